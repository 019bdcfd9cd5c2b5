"""The one place that says what each action of a plan does to its pool.

Code that carries plans out asks here and handles changes, never actions: the executor, a replay, a forecast
and the property tests. A new action is a case here; a new kind of change is a case for each of them too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.actions import (
    Action,
    Drain,
    DropTasks,
    EndArray,
    EndReservation,
    ExpandArray,
    Grow,
    HoldArray,
    KeepWarm,
    LimitReservation,
    Preempt,
    ReleaseWarm,
    SettleWarm,
    Start,
    Stop,
    TrimArray,
    Unpark,
    WarnOfBudget,
    WatchGpus,
    freed_by,
)
from trainmaster.core.planning.capacity import lacking
from trainmaster.core.planning.changes import (
    ArrayChange,
    ArrayEnded,
    ArrayHeld,
    ArrayTrimmed,
    BudgetWarned,
    GpusWatched,
    GrowthAsked,
    HoldEnded,
    HoldLimited,
    HoldPlaced,
    HoldUsed,
    JobDrained,
    JobRequeued,
    JobStarts,
    LimitForgotten,
    PoolChange,
    RoomKept,
    StopSent,
    TasksDropped,
    TasksExpanded,
    VictimAsked,
    WarmPoolExtended,
    WarmPoolGivenUp,
    WarmPoolGone,
    WarmPoolReused,
)
from trainmaster.core.planning.snapshot import PreemptionReservation, WarmPool
from trainmaster.core.planning.throttles import Throttle


class CurrentPool(Protocol):
    """A pool as it is at the instant at which an action is carried out."""

    @property
    def used(self) -> Mapping[Capacity, int]: ...
    @property
    def warm(self) -> Mapping[Capacity, int]: ...
    def hold_of(self, preemptor: str) -> PreemptionReservation | None: ...
    def keeps_warm(self, warm_pool: WarmPool) -> bool:
        """Tell whether it is still there, and was not given up."""

    def running_tasks(self, array: str) -> int:
        """Return how many tasks of the array hold instances."""

    def committed_cents(self, team: str, month: str) -> int:
        """Return the cents that the team has spent and reserved in the month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Conditions that must still hold in the pool; else the decision was made on numbers that are void."""

    most_used: Vector | None = None
    """Most instances that may be in use, by capacity."""
    used: Vector | None = None
    """Exact instances that must be in use."""
    warm: Vector | None = None
    """Exact instances that must be warm."""
    most_committed: int | None = None
    """Most cents that ``start``'s team may have committed in the month of its charge."""
    throttles: tuple[Throttle, ...] = ()
    """Arrays whose tasks are started."""


NOTHING = Guard()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes by one action, split by what a crash in between would leave."""

    guard: Guard = NOTHING
    written: tuple[PoolChange, ...] = ()
    """Changes that state the intent. Under a guard they are one transaction, made before AWS is called."""
    afterwards: tuple[PoolChange, ...] = ()
    """Changes that are true once AWS has done what it was asked for."""

    def __iter__(self) -> Iterator[PoolChange]:
        """Yield all of them in order, for callers to whom AWS does at once what it is asked for."""
        yield from self.written
        yield from self.afterwards


def applied(action: Action, state: CurrentPool | None = None) -> Changes:
    """Say what an action does to its pool.

    Args:
        action: An action of a plan.
        state: The pool as it is now. None: the writer of the changes checks the guard in the same
            transaction, as the table does, or makes a new plan before anything can have changed.

    Raises:
        LostRaceError: The guard does not hold in ``state``.
    """
    changes = _changes(action)
    if state is not None and (broken := _broken(action, changes, state)):
        raise LostRaceError(broken)
    return changes


def _changes(action: Action) -> Changes:
    match action:
        case Start():
            return _started(action)
        case Preempt():
            return _preempted(action)
        case Grow():
            return _grown(action)
        case KeepWarm(warm_pool=kept, until=until):
            return Changes(afterwards=(WarmPoolExtended(warm_pool=kept, until=until),))
        case ReleaseWarm(warm_pool=given_up, because=because):
            gone = WarmPoolGone(warm_pool=replace(given_up, releasing=True, because=because))
            release = WarmPoolGivenUp(warm_pool=given_up, because=because)
            return Changes(written=(release,), afterwards=(gone,))
        case SettleWarm(warm_pool=overdue):
            return Changes(afterwards=(WarmPoolGone(warm_pool=overdue),))
        case ExpandArray() | DropTasks() | HoldArray() | EndArray() | TrimArray():
            return Changes(written=(_of_array(action),))
        case _:
            return _single(action)


def _of_array(action: ExpandArray | DropTasks | HoldArray | EndArray | TrimArray) -> ArrayChange:
    """Return the change of an array; its writer requires that the array is as the plan saw it."""
    match action:
        case ExpandArray(array=array, positions=positions):
            return TasksExpanded(array=array, positions=positions)
        case DropTasks(array=array, positions=positions):
            return TasksDropped(array=array, positions=positions)
        case HoldArray(array=array, failure_class=failure):
            return ArrayHeld(array=array, failure_class=failure)
        case EndArray(array=array):
            return ArrayEnded(array=array)
        case TrimArray(array=array):
            return ArrayTrimmed(array=array)


def _single(
    action: Stop | Drain | Unpark | EndReservation | LimitReservation | WarnOfBudget | WatchGpus,
) -> Changes:
    """Return the changes of actions that change one row each."""
    match action:
        case Stop(job=running):
            return Changes(afterwards=(StopSent(job=running),))
        case Drain(job=running, why=why):
            return Changes(afterwards=(JobDrained(job=running, why=why),))
        case Unpark(job=waiting):
            return Changes(written=(JobRequeued(job=waiting),))
        case EndReservation(hold=hold):
            return Changes(written=(HoldEnded(hold=hold),))
        case LimitReservation(hold=hold, until=until):
            return Changes(written=(HoldLimited(hold=hold, until=until),))
        case WarnOfBudget(team=team, month=month, spent_cents=spent, limit_cents=limit):
            warned = BudgetWarned(team=team, month=month, spent_cents=spent, limit_cents=limit)
            return Changes(written=(warned,))
        case WatchGpus(job=running, watch=watch):
            return Changes(afterwards=(GpusWatched(job=running, watch=watch),))
        case _:
            assert_never(action)


def _started(action: Start) -> Changes:
    """Return a claim: it uses up the job's hold and warm pool in the transaction that gives it instances."""
    written: list[PoolChange] = []
    if action.ends_hold:
        written.append(HoldUsed(preemptor=action.job.name))
    if action.reuses is not None:
        written.append(WarmPoolReused(warm_pool=action.reuses))
    return Changes(
        guard=Guard(
            most_used=action.most_used,
            warm=action.warm,
            most_committed=action.charge.room_cents if action.charge else None,
            throttles=() if action.throttle is None else (action.throttle,),
        ),
        written=(*written, JobStarts(start=action)),
        afterwards=tuple(LimitForgotten(capacity=capacity) for capacity in action.probes),
    )


def _preempted(action: Preempt) -> Changes:
    """Return a preemption: the hold is for all that the job needs, and says what is still to be freed."""
    # A batch may hold fewer victims than the preemption needs: what the others are to free stays on the hold,
    # so that a later pass can go on from there.
    missing = lacking(action.short, action.freed)
    hold = PreemptionReservation(
        preemptor=action.job.name, vector=action.shape.vector, missing=missing or None
    )
    stops = [VictimAsked(victim=victim, preemption=action) for victim in action.victims]
    rooms = [
        RoomKept(hold=PreemptionReservation(preemptor=victim.name, vector=action.kept[victim.name]))
        for victim in action.victims
        if victim.name in action.kept
    ]
    return Changes(
        # The victims were chosen for exactly these numbers: with others, too many or too few would be
        # stopped.
        guard=Guard(used=action.used),
        written=(*stops, *rooms, HoldPlaced(hold=hold, replaces=action.goes_on)),
        afterwards=tuple(StopSent(job=victim) for victim in action.victims),
    )


def _grown(action: Grow) -> Changes:
    """Return a growth: the room is kept in the transaction that asks the job to stop."""
    room = PreemptionReservation(preemptor=action.job.name, vector=action.room)
    return Changes(
        guard=Guard(used=action.used),
        written=(
            GrowthAsked(job=action.job, width=action.width, why=action.why),
            RoomKept(hold=room),
        ),
        afterwards=(StopSent(job=action.job),),
    )


def in_batches(action: Preempt, size: int) -> Iterator[Preempt]:
    """Split a preemption into ones of at most ``size`` victims, each under the hold that the last left."""
    hold, short = action.goes_on, action.short
    for first in range(0, len(action.victims), size):
        victims = action.victims[first : first + size]
        yield replace(action, victims=victims, short=short, goes_on=hold)
        short = lacking(short, freed_by(victims, action.kept))
        hold = PreemptionReservation(
            preemptor=action.job.name, vector=action.shape.vector, missing=short or None
        )


def _broken(action: Action, changes: Changes, state: CurrentPool) -> str | None:
    """Say in words which part of the guard does not hold any more; None if all of it holds."""
    guard = changes.guard
    if any(state.used.get(capacity, 0) > room for capacity, room in (guard.most_used or {}).items()):
        return f"{state.used} in use, room for {guard.most_used}"
    if any(state.used.get(capacity, 0) != count for capacity, count in (guard.used or {}).items()):
        return f"{state.used} in use, not {guard.used}"
    if any(state.warm.get(capacity, 0) != count for capacity, count in (guard.warm or {}).items()):
        return f"{state.warm} warm, not {guard.warm}"
    if isinstance(action, Start) and action.charge is not None and guard.most_committed is not None:
        committed = state.committed_cents(action.job.team, action.charge.month)
        if committed > guard.most_committed:
            return f"{committed} cents committed, most were {guard.most_committed}"
    for throttle in guard.throttles:
        running = state.running_tasks(throttle.array)
        if throttle.at_most is not None and running >= throttle.at_most:
            return f"{running} tasks of {throttle.array} run, at most {throttle.at_most} may"
    return _missing(changes, state)


def _missing(changes: Changes, state: CurrentPool) -> str | None:
    for change in changes.written:
        if isinstance(change, HoldPlaced) and state.hold_of(change.hold.preemptor) != change.replaces:
            return f"{change.hold.preemptor} has another hold than {change.replaces}"
        if isinstance(change, WarmPoolReused) and not state.keeps_warm(change.warm_pool):
            return f"the warm pool of {change.warm_pool.training_job_name} is gone"
    return None
