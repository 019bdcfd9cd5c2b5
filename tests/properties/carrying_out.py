"""What a plan makes of its pool, one action after the other, as the executor and the table would do it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.index_sets import bits_of
from trainmaster.core.jobs.instances import Capacity, Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Action, Preempt, Start
from trainmaster.core.planning.apply import applied
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
    WarmPoolChange,
    WarmPoolExtended,
    WarmPoolGivenUp,
    WarmPoolGone,
    WarmPoolReused,
)
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import (
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import PoolPolicy

from tests.builders import NOON

LEASE = timedelta(seconds=300)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPool:
    """The pool of a snapshot, as the table would check a write against it."""

    snapshot: Snapshot

    @property
    def used(self) -> Vector:
        return self.snapshot.used

    @property
    def warm(self) -> Vector:
        return self.snapshot.warm

    def hold_of(self, preemptor: str) -> PreemptionReservation | None:
        return next((hold for hold in self.snapshot.holds if hold.preemptor == preemptor), None)

    def keeps_warm(self, warm_pool: WarmPool) -> bool:
        return warm_pool in self.snapshot.warm_pools and not warm_pool.releasing

    def running_tasks(self, array: str) -> int:
        return sum(job.array == array for job in self.snapshot.running)

    def committed_cents(self, team: str, month: str) -> int:
        budget = self.snapshot.budgets.get(team)
        return (
            0 if budget is None or budget.month != month else budget.account.spent + budget.account.reserved
        )


def carry_out(action: Action, snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """The pool after one action. Raises LostRaceError when a guard of its write does not hold."""
    for change in applied(action, SnapshotPool(snapshot=snapshot)):
        snapshot = changed(snapshot, change, now=now)
    return snapshot


def changed(snapshot: Snapshot, change: PoolChange, *, now: datetime) -> Snapshot:  # noqa: C901
    """The pool after one change."""
    match change:
        case JobStarts(start=start):
            return _started(start, snapshot, now=now)
        case VictimAsked(victim=victim, preemption=preemption):
            asked = replace(victim, state=JobState.PREEMPTING, preempted_for=preemption.job.name)
            asked = replace(asked, resized_at=now) if change.keeps else asked
            return _with_running(snapshot, asked)
        case GrowthAsked(job=job):
            return _with_running(snapshot, replace(job, state=JobState.PREEMPTING, resized_at=now))
        case JobDrained(job=job):
            return _with_running(snapshot, replace(job, state=JobState.PREEMPTING, stop_sent=True))
        case StopSent(job=job):
            (live,) = (running for running in snapshot.running if running.name == job.name)
            return _with_running(snapshot, replace(live, stop_sent=True))
        case JobRequeued(job=job):
            due = tuple(other for other in snapshot.due if other.name != job.name)
            return replace(snapshot, due=due, waiting=(*snapshot.waiting, replace(job, not_before=None)))
        case BudgetWarned(team=team):
            warned = replace(snapshot.budgets[team], warned=True)
            return replace(snapshot, budgets={**snapshot.budgets, team: warned})
        case LimitForgotten(capacity=capacity):
            limits = {one: limit for one, limit in snapshot.account_limits.items() if one != capacity}
            return replace(snapshot, account_limits=limits)
        case GpusWatched():
            raise AssertionError(f"no policy here has GPUs watched: {change}")
        case _:
            return _kept_up(change, snapshot)


def _array_changed(snapshot: Snapshot, change: ArrayChange) -> Snapshot:
    others = tuple(array for array in snapshot.arrays if array.name != change.array.name)
    match change:
        case TasksExpanded(jobs=jobs, after=after):
            entries = tuple(waiting_entry(job) for job in jobs)
            return replace(snapshot, arrays=(*others, after), waiting=(*snapshot.waiting, *entries))
        case TasksDropped(array=array, positions=dropped):
            left = array.unexpanded & ~bits_of(dropped)
            return replace(snapshot, arrays=(*others, replace(array, unexpanded=left)))
        case ArrayHeld(array=array):
            return replace(snapshot, arrays=(*others, replace(array, held=True, recent=())))
        case ArrayTrimmed(array=array):
            return replace(snapshot, arrays=(*others, replace(array, recent=())))
        case ArrayEnded():
            return replace(snapshot, arrays=others)
        case _:
            assert_never(change)


def _kept_up(
    change: HoldPlaced
    | RoomKept
    | HoldLimited
    | HoldUsed
    | HoldEnded
    | WarmPoolReused
    | WarmPoolChange
    | ArrayChange,
    pool: Snapshot,
) -> Snapshot:
    """Holds, warm pools and arrays."""
    if isinstance(change, ArrayChange):
        return _array_changed(pool, change)
    match change:
        case HoldPlaced(hold=hold) | RoomKept(hold=hold):
            return replace(pool, holds=(*_others(pool, hold.preemptor), hold))
        case HoldLimited(hold=hold, until=until):
            return replace(pool, holds=(*_others(pool, hold.preemptor), replace(hold, until=until)))
        case HoldEnded(hold=PreemptionReservation(preemptor=preemptor)) | HoldUsed(preemptor=preemptor):
            return replace(pool, holds=_others(pool, preemptor))
        case WarmPoolExtended(warm_pool=kept, until=until):
            return _with_warm(pool, kept, replace(kept, expires_at=until))
        case WarmPoolGivenUp(warm_pool=kept):
            return _with_warm(pool, kept, replace(kept, releasing=True))
        case WarmPoolReused(warm_pool=kept) | WarmPoolGone(warm_pool=kept):
            return _with_warm(pool, kept, None)
        case _:
            assert_never(change)


def _others(pool: Snapshot, preemptor: str) -> tuple[PreemptionReservation, ...]:
    return tuple(hold for hold in pool.holds if hold.preemptor != preemptor)


def after_stops(snapshot: Snapshot) -> Snapshot:
    """Everything that was asked to stop has stopped; victims wait again."""
    stopped = [one for one in snapshot.running if one.state in (JobState.PREEMPTING, JobState.STOPPING)]
    live = tuple(one for one in snapshot.running if one not in stopped)
    return replace(snapshot, running=live, used=_some(total(one.vector for one in live)))


def _started(action: Start, snapshot: Snapshot, *, now: datetime) -> Snapshot:
    started = started_job(action, now=now)
    waiting = tuple(job for job in snapshot.waiting if job.name != action.job.name)
    used = _some(total((snapshot.used, started.vector)))
    budgets = dict(snapshot.budgets)
    if action.charge is not None and action.job.team in budgets:
        budget = budgets[action.job.team]
        budgets[action.job.team] = replace(budget, account=budget.account.reserve(action.charge.cents))
    running = (*snapshot.running, started)
    arrays = tuple(
        _with_start(array) if array.name == action.job.array else array for array in snapshot.arrays
    )
    return replace(snapshot, waiting=waiting, running=running, used=used, budgets=budgets, arrays=arrays)


def _with_start(array: Array) -> Array:
    jobs = replace(array.jobs, waiting=array.jobs.waiting - 1, running=array.jobs.running + 1)
    return replace(array, jobs=jobs)


def started_job(action: Start, *, now: datetime) -> RunningJob:
    job = action.job
    return RunningJob(
        name=job.name,
        ver=job.ver + 2,
        team=job.team,
        state=JobState.RUNNING,
        vector=action.shape.vector,
        priority=job.priority,
        score=job.score,
        claimed_at=now,
        lease_until=now + LEASE,
        training_job_name=job.name,
        array=job.array,
        known_to_sagemaker=True,
        training_since=None,
        stop_sent=False,
        preemptible=True,
        has_checkpoint=job.has_checkpoint,
        preemptions=0,
    )


def preempted(action: Preempt, snapshot: Snapshot, *, most: int) -> Snapshot:
    """With so many victims asked, from the first on; whoever did so died then."""
    return carry_out(replace(action, victims=action.victims[:most]), snapshot, now=NOON)


def _with_running(snapshot: Snapshot, job: RunningJob) -> Snapshot:
    changed = tuple(job if one.name == job.name else one for one in snapshot.running)
    return replace(snapshot, running=changed)


def _with_warm(snapshot: Snapshot, before: WarmPool, after: WarmPool | None) -> Snapshot:
    name = before.training_job_name
    others = tuple(warm for warm in snapshot.warm_pools if warm.training_job_name != name)
    kept = others if after is None else (*others, after)
    return replace(snapshot, warm_pools=kept, warm=_some(total(one.vector for one in kept)))


def frees_by(
    job: WaitingJob, vector: Vector, pool: PoolPolicy, snapshot: Snapshot, *, now: datetime
) -> datetime:
    """When a job that starts now is over at the very latest, stated apart from the planner."""
    slack = timedelta(minutes=10)
    if any(capacity.endswith(":spot") for capacity in vector):
        return now + (job.max_wait or job.runs_at_most + snapshot.spot_max_wait) + slack
    return now + pool.capacity_wait + job.runs_at_most + slack


def _some(counts: Vector) -> dict[Capacity, int]:
    return {capacity: count for capacity, count in counts.items() if count}
