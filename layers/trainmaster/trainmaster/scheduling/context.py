"""What one pass over one pool works with."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.policy import PoolPolicy
from trainmaster.ports import Clock, JobReader, JobStore, Notifier, PoolReader, TrainingApi


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    pool: str
    policy_version: int
    store: JobStore
    reader: JobReader
    pools: PoolReader
    training: TrainingApi
    notifier: Notifier
    clock: Clock
    stack: str
    rules: PoolPolicy
    spot_max_wait: timedelta
    """What MaxWaitTimeInSeconds is above MaxRuntimeInSeconds where the planner picked spot."""
