"""The sections of the policy that govern jobs while they run, as typed data."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.principals import PrincipalPattern


class Mode(StrEnum):
    """What becomes of a job that violates a rule."""

    ENFORCE = "enforce"
    """It is refused, or stopped where it runs already."""
    AUDIT = "audit"
    """It is written down."""


class UnmanagedThen(StrEnum):
    """What becomes of a training job that went round the queue."""

    ALLOW = "allow"
    AUDIT = "audit"
    ADOPT = "adopt"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedJobs:
    then: UnmanagedThen = UnmanagedThen.AUDIT
    except_principals: tuple[PrincipalPattern, ...] = ()
    """Roles that training jobs run under: SageMaker does not tell who started one."""
    except_tuning_jobs: bool = True


class IdleThen(StrEnum):
    NOTIFY = "notify"
    STOP = "stop"
    REQUEUE = "requeue"
    """It is stopped and comes back from its checkpoint, not charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """GPUs that do nothing."""

    gpu_below_percent: int = 1
    """Of one GPU; of the busiest host."""
    for_: timedelta = timedelta(minutes=15)
    period: timedelta = timedelta(minutes=5)
    """Of one data point of the alarm."""
    then: IdleThen = IdleThen.STOP
    warn_first: timedelta = timedelta(minutes=10)
    """From the warning to the stop."""


class UtilizationThen(StrEnum):
    NOTIFY = "notify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """GPUs that could do more: the owner is told, nothing else."""

    PERIOD: ClassVar[timedelta] = timedelta(minutes=5)
    """Of one data point of the alarm; ``for_`` is a multiple of it."""

    gpu_below_percent: int = 80
    """Of one GPU; of the least busy host."""
    for_: timedelta = timedelta(hours=1)
    then: UtilizationThen = UtilizationThen.NOTIFY


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What is asked of the GPUs of each job; None: nothing."""

    idle: Idle | None = None
    utilization: Utilization | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    max_age: timedelta = timedelta(hours=2)
    """Older than this, the owner of the job is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    first: timedelta = timedelta(minutes=1)
    max: timedelta = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOom:
    """Hyperparameters that a retry after running out of GPU memory halves and doubles."""

    batch: tuple[str, ...] = ()
    accumulation: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    min_runtime: timedelta = timedelta(hours=2)
    """Productive time since the last charged failure that earns a retry; service and capacity need none."""
    max_retries: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    retry_classes: frozenset[FailureClass] = frozenset(
        {FailureClass.SERVICE, FailureClass.CAPACITY, FailureClass.HARDWARE, FailureClass.NETWORK}
    )
    on_oom: OnOom | None = None


class Fallback(StrEnum):
    ON_DEMAND = "on-demand"
    NONE = "none"
    """Spot jobs stay on spot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    max_interruptions: int = 3
    min_progress_ratio: float = 0.5
    """Training of all the time since the claim, once it was interrupted and an hour is over."""
    max_wait: timedelta = timedelta(hours=6)
    """Where the planner makes a job a spot job: how much longer than its run time it may take."""
    fallback: Fallback = Fallback.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifications:
    email: tuple[str, ...] = ()
    """Who is meant to be subscribed to the mail topic."""
    events: bool = True
    """On the account's default event bus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Governing:
    """Everything above, with the defaults of an empty document."""

    unmanaged_jobs: UnmanagedJobs = field(default_factory=UnmanagedJobs)
    idle: Idle | None = None
    utilization: Utilization | None = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    recovery: Recovery = field(default_factory=Recovery)
    spot: Spot = field(default_factory=Spot)
    notifications: Notifications = field(default_factory=Notifications)

    @property
    def watch(self) -> Watch:
        return Watch(idle=self.idle, utilization=self.utilization)
