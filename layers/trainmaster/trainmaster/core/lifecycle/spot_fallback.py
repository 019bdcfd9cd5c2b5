"""Spot fallback: when a job should leave spot instances, and whether it can have on-demand ones instead."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.costs.spot_record import SpotRecord
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


TypeRecords = Mapping[str, SpotRecord]
"""Recent records of spot instances, of all jobs, by instance type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Facts about a spot attempt that is over."""

    seen: Observation | None
    """SageMaker's report on the attempt."""
    until: datetime
    """When it ended."""
    records: TypeRecords = field(default_factory=dict)
    """Records of its instance types; empty if the policy does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """Progress of a job on spot instances, over all its attempts there."""

    interruptions: int
    trained: timedelta
    elapsed: timedelta
    expected: float = 0.0
    """Number of interruptions that the records of its types foretell while it stays as long again."""


def concern(job: Job) -> bool:
    """Tell whether the rules may move a running job; checked before the policy is read.

    They never concern one that was moved: if its team's budget put it on spot again, it stays there.
    """
    live = job.live
    if live is None or job.state is not JobState.RUNNING or not _may_move(job, live):
        return False
    return job.spot.interruptions + live.spot.interruptions > 0


def verdict(
    job: Job, seen: Observation, policy: Policy, *, now: datetime, records: TypeRecords | None = None
) -> Verdict | None:
    """Return the verdict on a job that the rules concern; None if it makes progress.

    Args:
        job: A running job, with its live attempt on spot.
        seen: SageMaker's report on the attempt.
        policy: The policy in force.
        now: Instant of the report.
        records: Recent records of its instance types; None if the policy does not count them.
    """
    stay = Ended(seen=seen, until=now, records=records or {})
    why = _enough(_progress(job, job.live_attempt, stay), policy.governing.spot)
    return None if why is None else Verdict(why=why, stays=_stays(job, policy))


def may_move(job: Job) -> bool:
    """Tell whether the live attempt is on spot, and the rules have not moved the job before."""
    return job.live is not None and _may_move(job, job.live)


def may_leave(job: Job, policy: Policy) -> bool:
    """Tell whether a job that may move could run on demand."""
    return _stays(job, policy) is None


def at_end(job: Job, ended: Ended, reason: Reason, policy: Policy) -> Reason | None:
    """Return why a job that is requeued moves to on-demand instances; None if it stays on spot.

    Args:
        job: A job that may move, with the attempt still live.
        ended: Facts about the attempt.
        reason: Reason why the attempt ended.
        policy: The policy in force.
    """
    if reason.code is ReasonCode.SPOT_FALLBACK:
        return reason
    if job.reason is not None and job.reason.code is ReasonCode.SPOT_FALLBACK:
        return _moved(reason, job.reason.message)
    enough = _enough(_progress(job, job.live_attempt, ended), policy.governing.spot)
    return None if enough is None or _stays(job, policy) else _moved(reason, enough)


def _may_move(job: Job, live: Attempt) -> bool:
    return live.capacity_type is CapacityType.SPOT and not job.spot.left


def _moved(reason: Reason, why: str) -> Reason:
    """Return the reason of an end of another cause after which the job moves anyway."""
    return replace(reason, message=f"{reason.message}; {why}, so it is requeued on demand")


def _progress(job: Job, live: Attempt, stay: Ended) -> _Progress:
    interrupted = stay.seen.interruptions if stay.seen else live.spot.interruptions
    trained = job.spot.trained + trained_by(stay.until, live, stay.seen)
    elapsed = job.spot.elapsed + max(stay.until - live.claim.at, timedelta())
    as_long_again = min(elapsed, max(job.spec.max_runtime - trained, timedelta()))
    return _Progress(
        interruptions=job.spot.interruptions + interrupted,
        trained=trained,
        elapsed=elapsed,
        expected=_expected(job, live, stay.records, as_long_again),
    )


def _expected(job: Job, live: Attempt, records: TypeRecords, time: timedelta) -> float:
    """Return the interruptions that other jobs' records foretell for this time.

    The job's own ended attempts are in the records and already count one by one, so they are taken out. What
    they trained stays in, which only lowers the rate.
    """
    rates = ((records.get(capacity.instance_type, SpotRecord()), n) for capacity, n in live.vector.items())
    by_others = (
        (replace(record, interruptions=max(record.interruptions - job.spot.interruptions, 0.0)), n)
        for record, n in rates
    )
    return sum((record.expected(instances=n, runtime=time) or 0.0 for record, n in by_others), 0.0)


def _enough(progress: _Progress, rules: Spot) -> str | None:
    """Return why the job should leave spot; None if it makes progress."""
    if progress.interruptions > rules.max_interruptions:
        return f"interrupted {progress.interruptions} times on spot, more than {rules.max_interruptions}"
    # At most half of the limit, so that a bad week of a type moves only jobs that suffer from it themselves.
    expected = min(progress.expected, rules.max_interruptions / 2) if rules.count_type else 0.0
    if progress.interruptions and progress.interruptions + expected > rules.max_interruptions:
        return (
            f"interrupted {progress.interruptions} times on spot, and {progress.expected:.1f} more are to be "
            f"expected by the record of its instance type, together more than {rules.max_interruptions}"
        )
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
