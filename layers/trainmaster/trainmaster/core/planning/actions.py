"""Actions that a pass can decide on. ``execute`` handles every kind."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Shape, Vector, total
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob, WarmPool
from trainmaster.core.planning.throttles import Throttle
from trainmaster.core.policy.governance import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The worst case of an attempt, to be covered by its team's month."""

    month: str
    usd_per_hour: Decimal
    """USD per hour for all instances."""
    cents: int
    room_cents: int | None = None
    """Most cents that may be committed before the claim; None: the team has no budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Claim the instances and create the training job."""

    job: WaitingJob
    shape: Shape
    """The one of the job's shapes that it runs in; with InstancePreferences all types that are held."""
    most_used: Vector
    """Most instances that may be in use, by capacity, at the instant of the claim."""
    warm: Vector
    """Exact instances that must be warm at that instant; else ``capacity`` was computed wrongly."""
    reuses: WarmPool | None = None
    """The warm pool that it is to land in."""
    cold_startup: timedelta | None = None
    """Usual start-up of its warm key without a warm pool, if it is to land in one; None: not known."""
    ends_hold: bool = False
    """Whether capacity was held for the job; the claim uses it up."""
    charge: Charge | None = None
    """Charge of the attempt; None where the price is unknown."""
    throttle: Throttle | None = None
    """Array as it must still be, if the job is a task of one."""
    probes: tuple[Capacity, ...] = ()
    """Types whose learned account limit it exceeds, to find out whether that still holds."""
    probes_role: str | None = None
    """Key of the paused starts (``starts_key``) of which it is the one that is tried again."""
    backfills: bool = False
    """Whether it goes before a job that ranks ahead, without delaying it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Stop every victim so that ``job`` can start, and keep their capacity for it.

    More victims than one transaction takes are asked batch by batch, all under one reservation.
    """

    job: WaitingJob
    shape: Shape
    victims: tuple[RunningJob, ...]
    used: Vector
    """Instances in use when this was decided; if that has changed since, the decision is void."""
    short: Vector
    """Instances that it lacks: the victims free them between them, or others of the same plan free a part."""
    goes_on: PreemptionReservation | None = None
    """The reservation under which some victims have been asked already; None: these are the first."""
    reclaimed: frozenset[str] = frozenset()
    """Names of the victims that borrow what the preemptor's team takes back, whatever their priority."""
    kept: Mapping[str, Vector] = field(default_factory=dict)
    """Instances that elastic victims keep, by name: each comes back at once, narrower, in this room."""

    @property
    def reclaims(self) -> bool:
        return bool(self.reclaimed)

    @property
    def freed(self) -> Vector:
        """Instances that the victims free between them."""
        return freed_by(self.victims, self.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Stop an elastic job once, so that it comes back wider, in room that no waiting job can use."""

    job: RunningJob
    width: int
    """Instances that it comes back with; they are kept for it meanwhile."""
    used: Vector
    """Instances in use when this was decided; if that has changed since, the decision is void."""
    why: str
    """Width and gain in words, for people."""

    @property
    def room(self) -> Vector:
        return dict.fromkeys(self.job.vector, self.width)


def freed_by(victims: Collection[RunningJob], kept: Mapping[str, Vector]) -> dict[Capacity, int]:
    """Return the instances that victims free beside what elastic ones keep, by name."""
    freed = total(victim.vector for victim in victims)
    for name in {victim.name for victim in victims} & kept.keys() if kept else ():
        for capacity, count in kept[name].items():
            freed[capacity] -= count
    return freed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Send StopTrainingJob for an attempt that was asked to stop and whose stop was not sent yet."""

    job: RunningJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Stop a running job for the calendar, a plan or another team's reservation; it is requeued."""

    job: RunningJob
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpark:
    """Move a job whose back-off is over back into the queue."""

    job: WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReservation:
    """End the reservation of a preemptor that is gone or did not come in time: its capacity is free again."""

    hold: PreemptionReservation


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReservation:
    """Limit a reservation whose last victim has ended: from now on it has a deadline."""

    hold: PreemptionReservation
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandArray:
    """Make jobs of the next tasks of an array."""

    array: Array
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTasks:
    """End tasks of an array that were to run after tasks which did not complete."""

    array: Array
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldArray:
    """Hold an array, as its tasks fail one after the other in the same way."""

    array: Array
    failure_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndArray:
    """Note that the last task of an array has ended."""

    array: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimArray:
    """Forget ends of tasks that can hold the array no more."""

    array: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWarm:
    """Make SageMaker keep a warm pool for longer, as a job that can use it is due."""

    warm_pool: WarmPool
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWarm:
    """Give the instances of a warm pool back."""

    warm_pool: WarmPool
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleWarm:
    """Ask SageMaker whether a warm pool is gone that expired or was given up, and stop counting it if so."""

    warm_pool: WarmPool


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnOfBudget:
    """Notify a team that it has spent most of its month's budget."""

    team: str
    month: str
    spent_cents: int
    limit_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchGpus:
    """Make the alarms of the job's GPUs as ``watch`` wants them, or record why there are none."""

    job: RunningJob
    watch: Watch


Intended: TypeAlias = (
    Preempt
    | Grow
    | Stop
    | Drain
    | Unpark
    | EndReservation
    | LimitReservation
    | KeepWarm
    | ReleaseWarm
    | SettleWarm
    | WarnOfBudget
    | WatchGpus
    | ExpandArray
    | DropTasks
    | HoldArray
    | EndArray
    | TrimArray
)
"""All actions but starts."""
Action: TypeAlias = Start | Intended


def subject(action: Action) -> str:
    """Return the name of the job (or team) that an action is about."""
    match action:
        case EndReservation(hold=hold) | LimitReservation(hold=hold):
            return hold.preemptor
        case KeepWarm(warm_pool=pool) | ReleaseWarm(warm_pool=pool) | SettleWarm(warm_pool=pool):
            return pool.training_job_name
        case WarnOfBudget(team=team):
            return team
        case ExpandArray() | DropTasks() | HoldArray() | EndArray() | TrimArray():
            return action.array.name
        case _:
            return action.job.name


def identity(action: Action) -> tuple[object, ...]:
    """Return a key of the action and the state of its subject: the same again can change nothing more."""
    kind = type(action).__name__
    match action:
        case Preempt(job=job, victims=victims):
            return (kind, job.name, job.ver, *((victim.name, victim.ver) for victim in victims))
        case Grow(job=running, width=width):
            return (kind, running.name, running.ver, width)
        case EndReservation(hold=hold) | LimitReservation(hold=hold):
            return (kind, hold.preemptor, hold.until)
        case KeepWarm(warm_pool=pool) | ReleaseWarm(warm_pool=pool) | SettleWarm(warm_pool=pool):
            return (kind, pool.training_job_name, pool.expires_at, pool.releasing)
        case WarnOfBudget(team=team, month=month):
            return (kind, team, month)
        case ExpandArray() | DropTasks() | HoldArray() | EndArray() | TrimArray():
            return (kind, action.array.name, action.array.ver)
        case _:
            return (kind, action.job.name, action.job.ver)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of planning a pool once."""

    actions: tuple[Action, ...]
    reasons: Mapping[str, Reason]
    """Reason why each candidate that does not start waits, by job name."""
    widths: Mapping[str, str] = field(default_factory=dict)
    """Sentences, by running elastic job: what its next width would save, and what it needs for that."""
