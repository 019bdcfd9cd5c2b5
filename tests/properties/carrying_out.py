"""What a plan makes of its pool, as the executor and the table would do it, one action after the other."""

from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.instances import Capacity, Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import (
    Action,
    EndReservation,
    KeepWarm,
    LimitReservation,
    Preempt,
    ReleaseWarm,
    SettleWarm,
    Start,
    Stop,
    Unpark,
    WarnOfBudget,
    WatchGpus,
)
from trainmaster.core.planning.capacity import lacking
from trainmaster.core.planning.snapshot import (
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import PoolPolicy

LEASE = timedelta(seconds=300)


class RefusedError(AssertionError):
    """The table would not have taken the write."""


def carry_out(action: Action, snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """The pool after one action. Raises RefusedError when a guard of its write does not hold."""
    match action:
        case Start():
            return _start(action, snapshot, now=now)
        case Preempt():
            return preempted(action, snapshot)
        case Stop(job=job):
            return _with_running(snapshot, replace(job, stop_sent=True))
        case Unpark(job=job):
            due = tuple(one for one in snapshot.due if one.name != job.name)
            return replace(snapshot, due=due, waiting=(*snapshot.waiting, replace(job, not_before=None)))
        case WarnOfBudget(team=team):
            warned = replace(snapshot.budgets[team], warned=True)
            return replace(snapshot, budgets={**snapshot.budgets, team: warned})
        case WatchGpus():
            raise AssertionError(f"no policy here has GPUs watched: {action}")
        case _:
            return _kept_up(action, snapshot)


def _kept_up(
    action: EndReservation | LimitReservation | KeepWarm | ReleaseWarm | SettleWarm, pool: Snapshot
) -> Snapshot:
    """Holds and warm pools."""
    match action:
        case EndReservation(hold=hold):
            return replace(pool, holds=tuple(one for one in pool.holds if one != hold))
        case LimitReservation(hold=hold, until=until):
            others = tuple(one for one in pool.holds if one != hold)
            return replace(pool, holds=(*others, replace(hold, until=until)))
        case KeepWarm(warm_pool=kept, until=until):
            return _with_warm(pool, kept, replace(kept, expires_at=until))
        case ReleaseWarm(warm_pool=kept) | SettleWarm(warm_pool=kept):
            return _with_warm(pool, kept, None)


def after_stops(snapshot: Snapshot) -> Snapshot:
    """Everything that was asked to stop has stopped; victims wait again."""
    stopped = [one for one in snapshot.running if one.state in (JobState.PREEMPTING, JobState.STOPPING)]
    live = tuple(one for one in snapshot.running if one not in stopped)
    return replace(snapshot, running=live, used=_some(total(one.vector for one in live)))


def _start(action: Start, snapshot: Snapshot, *, now: datetime) -> Snapshot:
    if any(snapshot.used.get(one, 0) > room for one, room in action.most_used.items()):
        raise RefusedError(f"{action.job.name}: {snapshot.used} in use, room for {action.most_used}")
    if any(snapshot.warm.get(one, 0) != count for one, count in action.warm.items()):
        raise RefusedError(f"{action.job.name}: {snapshot.warm} warm, not {action.warm}")
    if action.reuses is not None:
        if action.reuses not in snapshot.warm_pools or action.reuses.releasing:
            raise RefusedError(f"{action.job.name}: the warm pool {action.reuses} is gone")
        snapshot = _with_warm(snapshot, action.reuses, None)
    holds = tuple(one for one in snapshot.holds if not action.ends_hold or one.preemptor != action.job.name)
    started = started_job(action, now=now)
    waiting = tuple(one for one in snapshot.waiting if one.name != action.job.name)
    running = (*snapshot.running, started)
    used = _some(total((snapshot.used, started.vector)))
    budgets = dict(snapshot.budgets)
    if action.charge is not None and action.job.team in budgets:
        budget = budgets[action.job.team]
        committed = budget.account.spent + budget.account.reserved
        if action.charge.room_cents is not None and committed > action.charge.room_cents:
            raise RefusedError(f"{action.job.name}: {committed} cents committed, {action.charge}")
        budgets[action.job.team] = replace(budget, account=budget.account.reserve(action.charge.cents))
    return replace(snapshot, waiting=waiting, running=running, used=used, holds=holds, budgets=budgets)


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
        known_to_sagemaker=True,
        training_since=None,
        stop_sent=False,
        preemptible=True,
        has_checkpoint=job.has_checkpoint,
        preemptions=0,
    )


def preempted(action: Preempt, snapshot: Snapshot, *, most: int | None = None) -> Snapshot:
    """With so many victims asked, from the first on; whoever did so died then."""
    if any(snapshot.used.get(one, 0) != count for one, count in action.used.items()):
        raise RefusedError(f"{action.job.name}: {snapshot.used} in use, not {action.used}")
    if next((hold for hold in snapshot.holds if hold.preemptor == action.job.name), None) != action.goes_on:
        raise RefusedError(f"{action.job.name} has another hold")
    victims = action.victims[:most]
    missing = lacking(action.short, total(one.vector for one in victims))
    hold = PreemptionReservation(
        preemptor=action.job.name, vector=action.shape.vector, missing=missing or None
    )
    for victim in victims:
        stopping = replace(victim, state=JobState.PREEMPTING, stop_sent=True, preempted_for=action.job.name)
        snapshot = _with_running(snapshot, stopping)
    others = (one for one in snapshot.holds if one.preemptor != action.job.name)
    return replace(snapshot, holds=(*others, hold))


def _with_running(snapshot: Snapshot, job: RunningJob) -> Snapshot:
    changed = tuple(job if one.name == job.name else one for one in snapshot.running)
    return replace(snapshot, running=changed)


def _with_warm(snapshot: Snapshot, before: WarmPool, after: WarmPool | None) -> Snapshot:
    others = tuple(one for one in snapshot.warm_pools if one != before)
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
