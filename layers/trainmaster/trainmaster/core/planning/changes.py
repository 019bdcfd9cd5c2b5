"""Changes that carrying out a plan can make to a pool, as values.

``applied`` says which action makes which.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.array_steps import expanded
from trainmaster.core.arrays.tasks import task_job
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob, WarmPool
from trainmaster.core.policy.governance import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarts:
    """The job leaves the queue, holds the instances of its shape, and reserves its charge."""

    start: Start


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimAsked:
    """A running job is asked to stop for ``preemption.job``; it holds its instances until it has ended."""

    victim: RunningJob
    preemption: Preempt

    @property
    def reclaims(self) -> bool:
        return self.victim.name in self.preemption.reclaimed

    @property
    def job(self) -> RunningJob:
        return self.victim

    @property
    def keeps(self) -> int | None:
        """Width at which an elastic victim comes back in room that is kept for it; None: nothing is kept."""
        kept = self.preemption.kept.get(self.victim.name)
        return None if kept is None else sum(kept.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAsked:
    """An elastic job is asked to stop, to come back wider; it holds its instances until it has ended."""

    job: RunningJob
    width: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKept:
    """Instances are kept free for an elastic job that is asked to stop and comes back at another width."""

    hold: PreemptionReservation


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSent:
    """SageMaker has accepted the request to stop the live attempt of a job that had been asked to stop."""

    job: RunningJob


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDrained:
    """A running job is asked to stop for a lowering, and SageMaker is; it comes back to the queue."""

    job: RunningJob
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequeued:
    """A job whose back-off is over waits in its turn again."""

    job: WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlaced:
    """Instances are kept free for a preemptor from now on."""

    hold: PreemptionReservation
    replaces: PreemptionReservation | None = None
    """The preemptor's hold so far, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLimited:
    """A hold ends by itself at ``until``."""

    hold: PreemptionReservation
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldUsed:
    """The preemptor starts with what was held for it."""

    preemptor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldEnded:
    """Held instances are free for all jobs again."""

    hold: PreemptionReservation

    @property
    def ran_out(self) -> bool:
        """Whether the hold had a deadline: a preemptor that still waits has preempted others in vain."""
        return self.hold.until is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoolReused:
    """A start lands in the warm pool: its instances count as used instead of warm."""

    warm_pool: WarmPool


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoolExtended:
    """SageMaker keeps the warm pool until ``until``."""

    warm_pool: WarmPool
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoolGivenUp:
    """SageMaker is asked to give the warm pool up; it still counts, and no job may reuse it."""

    warm_pool: WarmPool
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoolGone:
    """SageMaker keeps the warm pool no more: its instances are free."""

    warm_pool: WarmPool


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitForgotten:
    """A start above a learned account limit was accepted: the account allows more by now."""

    capacity: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWarned:
    """A team is notified that most of its month is spent, once."""

    team: str
    month: str
    spent_cents: int
    limit_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusWatched:
    """The alarms of a running job's GPUs are as ``watch`` wants them."""

    job: RunningJob
    watch: Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksExpanded:
    """Tasks of an array wait as jobs from now on."""

    array: Array
    positions: tuple[int, ...]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(task_job(self.array, position) for position in self.positions)

    @property
    def after(self) -> Array:
        return expanded(self.array, self.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksDropped:
    """Tasks of an array are stopped before they ever were jobs."""

    array: Array
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayHeld:
    """No waiting task of the array starts until somebody releases it."""

    array: Array
    failure_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayEnded:
    """Every task of the array has ended, and its team and dependents get a message."""

    array: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayTrimmed:
    """The array keeps only the ends that can still hold it."""

    array: Array


Claimed: TypeAlias = JobStarts | VictimAsked | GrowthAsked | RoomKept | HoldPlaced | HoldUsed | WarmPoolReused
"""Parts of a transaction under a guard: the counters of the pool change with the jobs."""
WarmPoolChange: TypeAlias = WarmPoolExtended | WarmPoolGivenUp | WarmPoolGone
Single: TypeAlias = (
    StopSent
    | JobDrained
    | JobRequeued
    | HoldLimited
    | HoldEnded
    | LimitForgotten
    | BudgetWarned
    | GpusWatched
)
"""Changes of one row, each made by itself."""
ArrayChange: TypeAlias = TasksExpanded | TasksDropped | ArrayHeld | ArrayEnded | ArrayTrimmed
PoolChange: TypeAlias = Claimed | WarmPoolChange | Single | ArrayChange
