"""What one pass over one pool works with."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.ports import Clock, JobReader, JobStore, TrainingApi


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    pool: str
    policy_version: int
    store: JobStore
    reader: JobReader
    training: TrainingApi
    clock: Clock
    stack: str
    capacity_wait: timedelta
    """The pool's MaxPendingTimeInSeconds for accelerated types."""
