"""Carry out a plan: the only code that starts and stops training jobs."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar, assert_never

from trainmaster.core.errors import (
    AccountLimitError,
    RowSetAsideError,
    ThrottledError,
    TrainmasterError,
    UnreachableError,
    WriteRefusedError,
)
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import budget_notice, to_tell
from trainmaster.core.planning.actions import Action, Grow, Intended, Preempt, Start
from trainmaster.core.planning.apply import Changes, applied
from trainmaster.core.planning.changes import (
    ArrayChange,
    BudgetWarned,
    Claimed,
    GpusWatched,
    HoldEnded,
    HoldLimited,
    JobDrained,
    JobRequeued,
    LimitForgotten,
    PoolChange,
    Single,
    StopSent,
    WarmPoolChange,
)
from trainmaster.services.scheduler.array_expansion import change_array
from trainmaster.services.scheduler.broken_rows import EntryRemovedError, read_job
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.faults import blame
from trainmaster.services.scheduler.gpu_alarms import watch_gpus
from trainmaster.services.scheduler.role_trials import is_held_back
from trainmaster.services.scheduler.starting import ReadAhead, claim, claim_together, follow, ready
from trainmaster.services.scheduler.stops import drain, end_reservation, grow, preempt, stop
from trainmaster.services.scheduler.warm_keeping import change_warm_pool

CREATE = "CreateTrainingJob"
MAX_UNREACHABLE = 3
"""Starts without a connection before a pass gives up: each waits for seconds, and the function has 120."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    done: list[Action] = field(default_factory=list)
    postponed: list[tuple[Action, TrainmasterError]] = field(default_factory=list)
    """Actions that lost a race or should be retried; the next look decides again."""
    failures: list[Exception] = field(default_factory=list)
    unreachable: int = 0
    """Number of starts that found no connection to SageMaker."""
    removed: int = 0
    """Number of removed entries that led to no job."""
    out_of_reach: set[str] = field(default_factory=set)
    """Jobs with an unreadable row; the next look plans without them."""
    has_turn: bool = False
    """Whether the account's turn to create has come, and nothing has been created in it so far."""
    left: int = 0
    """Number of actions not begun, because the time was over or the account called too often."""
    refused: set[Capacity] = field(default_factory=set)
    """Capacities of starts that a limit of the account forbade; jobs that need them are planned again."""

    held_back: int = 0
    """Number of starts not begun because AWS refused others with their role; they are planned again."""

    @property
    def gave_up(self) -> bool:
        return self.unreachable >= MAX_UNREACHABLE

    def refuses(self, start: Start) -> bool:
        return not self.refused.isdisjoint(start.shape.vector)


Rest: TypeAlias = Callable[[], None]
"""The rest of an action after its intent is written: calls that may take seconds."""
T = TypeVar("T")


def execute(actions: Sequence[Action], context: PassContext) -> Outcome:
    """Begin each action in order, finish them side by side; one bad job never stops the others.

    Nothing is begun after the deadline, and what was begun is finished: no claim is left without its Create.

    Crash safety: each action writes its intent first and calls SageMaker second, so a death between
    the two leaves a row that the next pass or the reconciler acts on.
    """
    outcome = Outcome()
    context.beside(_rests(actions, outcome, context))
    return outcome


def _rests(
    actions: Sequence[Action], outcome: Outcome, context: PassContext
) -> Iterator[Callable[[], object]]:
    """Begin each action when a worker is free for its rest, not before."""
    coming, ahead = deque(actions), ReadAhead.of(actions)
    while coming:
        if context.deadline.is_over:
            outcome.left += len(coming)
            return
        action = coming.popleft()
        if not isinstance(action, Start):
            rest = _do(action, partial(_begin, action, context), outcome, context)
            if rest is not None:
                yield partial(_do, action, rest, outcome, context)
        elif not _is_passed_over(action, outcome, context) and _has_turn(outcome, context):
            group = [action, *_followers(action, coming, outcome, context)]
            for _ in group[1:]:
                coming.popleft()
            yield from _started(group, ahead, outcome, context)


def _is_passed_over(action: Start, outcome: Outcome, context: PassContext) -> bool:
    """Skip a start that the starts before it have shown to be in vain; the next look decides about it."""
    if is_held_back(action, context):
        outcome.held_back += 1
        return True
    return outcome.gave_up or outcome.refuses(action)


def _followers(
    first: Start, coming: Iterable[Action], outcome: Outcome, context: PassContext
) -> Iterator[Start]:
    """Yield starts to be claimed with the first: as many as there are free workers and turns for."""

    def may(action: Start) -> bool:
        if outcome.refuses(action) or is_held_back(action, context):
            return False
        return context.turns.wait_for(CREATE, most=timedelta())

    return follow(first, islice(coming, context.beside.hands - 1), may)


def _started(
    group: Sequence[Start], ahead: ReadAhead, outcome: Outcome, context: PassContext
) -> Iterator[Callable[[], object]]:
    """Claim the group at once, and yield what is left of each start."""
    prepared = (_do(action, partial(ready, action, ahead, context), outcome, context) for action in group)
    several = [start for start in prepared if start is not None]
    rests = claim_together(several, context) if len(several) > 1 else None
    for number, start in enumerate(several):
        rest = rests[number] if rests else _do(start.action, partial(claim, start, context), outcome, context)
        if rest is not None:
            outcome.has_turn = False
            yield partial(_do, start.action, rest, outcome, context)


def _has_turn(outcome: Outcome, context: PassContext) -> bool:
    """Wait for the turn before the claim, so that no instances are held while the account may not call.

    The turn of a claim that failed goes to the next one.
    """
    if not outcome.has_turn:
        outcome.has_turn = context.turns.wait_for(CREATE, most=context.deadline.left())
    outcome.left += not outcome.has_turn
    return outcome.has_turn


def _do(action: Action, part: Callable[[], T | None], outcome: Outcome, context: PassContext) -> T | None:
    """Do a part of an action and return what is left of it; None if nothing is."""
    try:
        rest = part()
    except RowSetAsideError as error:
        outcome.out_of_reach |= {error.subject} if error.subject else set()
        outcome.postponed.append((action, error))
    except EntryRemovedError:
        outcome.removed += 1
    except WriteRefusedError as error:
        _blame(outcome, action, error, context)
    except TrainmasterError as error:
        _note(outcome, action, error)
    except Exception as error:  # noqa: BLE001  the bulkhead; the handler raises it after the pass
        _blame(outcome, action, error, context)
    else:
        if rest is None:
            outcome.done.append(action)
        return rest
    return None


def _blame(outcome: Outcome, action: Action, error: Exception, context: PassContext) -> None:
    """Handle an error that a retry cannot help: the pass goes on without the job."""
    outcome.failures.append(error)
    if isinstance(action, Start | Preempt):
        outcome.out_of_reach.add(action.job.name)
        blame(action.job, error, context)


def _note(outcome: Outcome, action: Action, error: TrainmasterError) -> None:
    """Note an error: one that allows a retry is no failure, but losing the connection is one, once."""
    if error.retryable:
        outcome.postponed.append((action, error))
    else:
        outcome.failures.append(error)
    if isinstance(error, ThrottledError) and isinstance(action, Start):
        outcome.left += 1
    if isinstance(error, AccountLimitError) and isinstance(action, Start):
        outcome.refused |= action.shape.vector.keys()
    if isinstance(error, UnreachableError):
        outcome.unreachable += 1
        if outcome.gave_up:
            outcome.failures.append(error)


def _begin(action: Intended, context: PassContext) -> Rest | None:
    """Write the intent; an action that only reads or changes one row before it calls AWS is all rest."""
    if isinstance(action, Preempt):
        return preempt(action, context)
    if isinstance(action, Grow):
        return grow(action, context)
    changes = applied(action)
    if changes.afterwards:
        return partial(_make, changes, context)
    _make(changes, context)
    return None


def _make(changes: Changes, context: PassContext) -> None:
    """Make each change in its order. A death in between leaves the rest to the next pass."""
    for change in changes:
        _make_one(change, context)


def _make_one(change: PoolChange, context: PassContext) -> None:
    if isinstance(change, WarmPoolChange):
        change_warm_pool(change, context)
    elif isinstance(change, ArrayChange):
        change_array(change, context)
    elif isinstance(change, Claimed):
        raise TypeError(f"{type(change).__name__} is part of a transaction: write it with its condition")
    else:
        _make_single(change, context)


def _make_single(change: Single, context: PassContext) -> None:  # noqa: C901  a case for each
    match change:
        case StopSent(job=running):
            stop(read_job(running, context), context)
        case JobDrained():
            drain(change, context)
        case GpusWatched(job=running, watch=watch):
            watch_gpus(read_job(running, context), watch, context)
        case JobRequeued(job=waiting):
            job = read_job(waiting, context)
            context.store.commit([Change(before=job, after=steps.unparked(job))], at=context.clock())
        case HoldEnded():
            end_reservation(change, context)
        case HoldLimited(hold=hold, until=until):
            context.store.limit_hold(context.pool, hold, until)
        case LimitForgotten(capacity=capacity):
            context.store.learn_limit(context.pool, capacity, None)
        case BudgetWarned():
            _warn(change, context)
        case _:
            assert_never(change)


def _warn(warning: BudgetWarned, context: PassContext) -> None:
    """Leave the message first, note it second: after a crash in between the same message is left again."""
    notice = budget_notice(
        warning.team, month=warning.month, spent_cents=warning.spent_cents, limit_cents=warning.limit_cents
    )
    cause = f"{warning.team}#{warning.month}"
    context.store.leave(context.pool, [to_tell(notice, cause=cause, at=context.clock())])
    context.store.warned(warning.team, warning.month)
