"""What one pass over one pool works with."""

from dataclasses import dataclass, field

from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.ports import (
    AlarmKeeper,
    Beside,
    Clock,
    JobReader,
    JobStore,
    Mailer,
    Notifier,
    OutboxStore,
    PoolReader,
    TrainingApi,
    Turns,
)
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.group_commit import GroupCommit
from trainmaster.services.scheduler.known_roles import KnownRoles


@dataclass(frozen=True, slots=True, kw_only=True)
class PassContext:
    pool: str
    policy_version: int
    store: JobStore
    messages: OutboxStore
    reader: JobReader
    pools: PoolReader
    training: TrainingApi
    alarms: AlarmKeeper
    notifier: Notifier
    mailer: Mailer
    turns: Turns
    beside: Beside
    clock: Clock
    deadline: Deadline
    """Nothing that costs time is begun after it."""
    stack: str
    policy: Policy
    pool_policy: PoolPolicy
    """The pool's section of the policy."""
    roles: KnownRoles
    records: GroupCommit = field(default_factory=GroupCommit)
    """Of starts that SageMaker took."""
