"""Spot fallback: when a job should leave spot instances, and whether it can have on-demand ones instead."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.instances import CapacityType, Shape, fits, on_demand
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import trained_by
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.loans import Loans, beyond_quota
from trainmaster.core.planning.queue_entries import running_entry
from trainmaster.core.policy import UNMANAGED, Policy, PoolPolicy, Quota
from trainmaster.core.policy.governance import Fallback, Spot

PATIENCE = timedelta(hours=1)
"""Time on spot before its progress is judged, as starts and restarts take minutes of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict that a job should leave spot."""

    why: str
    stays: Reason | None = None
    """Reason why it cannot leave; None: it leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """Progress of a job on spot instances, over all its attempts there."""

    interruptions: int
    trained: timedelta
    elapsed: timedelta


def concern(job: Job) -> bool:
    """Tell whether the rules may move a running job; checked before the policy is read.

    They never concern one that was moved: if its team's budget put it on spot again, it stays there.
    """
    live = job.live
    if live is None or job.state is not JobState.RUNNING or not _may_move(job, live):
        return False
    return job.spot.interruptions + live.spot.interruptions > 0


def verdict(job: Job, seen: Observation, policy: Policy, *, now: datetime) -> Verdict | None:
    """Return the verdict on a job that the rules concern; None if it makes progress.

    Args:
        job: A running job, with its live attempt on spot.
        seen: SageMaker's report on the attempt.
        policy: The policy in force.
        now: Instant of the report.
    """
    why = _enough(_progress(job, job.live_attempt, seen, until=now), policy.governing.spot)
    return None if why is None else Verdict(why=why, stays=_stays(job, policy))


def may_move(job: Job) -> bool:
    """Tell whether the live attempt is on spot, and the rules have not moved the job before."""
    return job.live is not None and _may_move(job, job.live)


def may_leave(job: Job, policy: Policy) -> bool:
    """Tell whether a job that may move could run on demand."""
    return _stays(job, policy) is None


def at_end(
    job: Job, seen: Observation | None, reason: Reason, policy: Policy, *, until: datetime
) -> Reason | None:
    """Return why a job that is requeued moves to on-demand instances; None if it stays on spot.

    Args:
        job: A job that may move, with the attempt still live.
        seen: SageMaker's report on the attempt.
        reason: Reason why the attempt ended.
        policy: The policy in force.
        until: When the attempt ended.
    """
    if reason.code is ReasonCode.SPOT_FALLBACK:
        return reason
    if job.reason is not None and job.reason.code is ReasonCode.SPOT_FALLBACK:
        return _moved(reason, job.reason.message)
    enough = _enough(_progress(job, job.live_attempt, seen, until=until), policy.governing.spot)
    return None if enough is None or _stays(job, policy) else _moved(reason, enough)


def _may_move(job: Job, live: Attempt) -> bool:
    return live.capacity_type is CapacityType.SPOT and not job.spot.left


def _moved(reason: Reason, why: str) -> Reason:
    """Return the reason of an end of another cause after which the job moves anyway."""
    return replace(reason, message=f"{reason.message}; {why}, so it is requeued on demand")


def _progress(job: Job, live: Attempt, seen: Observation | None, *, until: datetime) -> _Progress:
    interrupted = seen.interruptions if seen else live.spot.interruptions
    return _Progress(
        interruptions=job.spot.interruptions + interrupted,
        trained=job.spot.trained + trained_by(until, live, seen),
        elapsed=job.spot.elapsed + max(until - live.claim.at, timedelta()),
    )


def _enough(progress: _Progress, rules: Spot) -> str | None:
    """Return why the job should leave spot; None if it makes progress."""
    if progress.interruptions > rules.max_interruptions:
        return f"interrupted {progress.interruptions} times on spot, more than {rules.max_interruptions}"
    # Without interruptions little progress is not the fault of spot.
    if not progress.interruptions or progress.elapsed < PATIENCE:
        return None
    if progress.trained >= progress.elapsed * rules.min_progress_ratio:
        return None
    part = progress.trained * 100 // progress.elapsed
    least = int(rules.min_progress_ratio * 100)
    return f"in training for {part} % of its time on spot after an interruption, less than {least} %"


def _stays(job: Job, policy: Policy) -> Reason | None:
    """Return the reason that keeps it on spot; None if there is none."""
    if policy.governing.spot.fallback is Fallback.NONE:
        return Reason(
            code=ReasonCode.NO_FALLBACK, message="the policy moves no job to on-demand (spot.fallback: none)"
        )
    if job.spec.pool == UNMANAGED:
        return None
    pool = policy.pool(job.spec.pool)
    capacity = pool_vector(pool) if pool else {}
    roomy = [shape for shape in on_demand(job.spec.shapes) if fits(shape.vector, capacity)]
    if pool is None or not roomy:
        message = f"pool {job.spec.pool} has no on-demand capacity that it would fit into"
    elif all(_may_not_have(shape, job, pool) for shape in roomy):
        message = (
            "a job that cannot be stopped may not borrow, and the quota of team"
            f" {job.spec.team} in pool {pool.name} is less than it needs on demand"
        )
    else:
        return None
    return Reason(code=ReasonCode.NO_ON_DEMAND_CAPACITY, message=message)


def _may_not_have(shape: Shape, job: Job, pool: PoolPolicy) -> bool:
    """Tell whether the job would wait for ever on demand: it may not borrow, and its team has too few."""
    quota = pool.quotas.get(job.spec.team, Quota())
    loans = Loans.of(pool)
    is_bound = bool(pool.quotas) and loans.bind(running_entry(job))
    return is_bound and beyond_quota(quota.nominal, shape.vector) is not None


def leaves_spot(job: Job, why: str) -> Job:
    """Ask a job that makes too little progress on spot to stop; it is requeued on demand."""
    reason = Reason(code=ReasonCode.SPOT_FALLBACK, message=why)
    return replace(job.moved_to(JobState.PREEMPTING), reason=reason)


def stays_on_spot(job: Job, reason: Reason) -> Job:
    """Record that it should leave spot and cannot; its owner is notified once for each attempt."""
    live = job.live_attempt
    return replace(job, live=replace(live, spot=replace(live.spot, stays=reason)))
