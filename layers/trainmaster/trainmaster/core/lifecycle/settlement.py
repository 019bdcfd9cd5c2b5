"""Settle an end: the job after it, final or waiting again; the bill of the attempt, and the training lost."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import EndedAttempt, line_of, lost_to
from trainmaster.core.jobs.attempts import (
    MOST_STATUSES,
    Attempt,
    AttemptEnd,
    Bill,
    Progress,
    Reason,
    SpotState,
    StatusStart,
)
from trainmaster.core.jobs.instances import CapacityType, Shape
from trainmaster.core.jobs.model import Job, JobState, Spent
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import counted_time, runtime_left, trained_by
from trainmaster.core.lifecycle import width_changes
from trainmaster.core.lifecycle.backoff import backoff
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import End
from trainmaster.core.lifecycle.repeated_stops import startups_lost, stopped_for, training_lost
from trainmaster.core.lifecycle.retries import Retry
from trainmaster.core.lifecycle.unserved_attempts import after_end
from trainmaster.core.lifecycle.warm_lessons import startup_saved
from trainmaster.core.planning.order import score_after
from trainmaster.core.planning.snapshot import WarmPool

WARM_AVAILABLE = "Available"
"""WarmPoolStatus.Status of a pool that waits for the next job. Source: SageMaker API, WarmPoolStatus."""


def settled(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Change:
    """End an attempt: its slot is free, and the job is final or waits with the next one."""
    times = _times(job, end, seen, now=now)
    attempt = _finished_attempt(job, end, seen, times)
    extended = runtime_left(job)[1]  # as at the claim: only attempts that came to be use an extension up
    after = replace(
        _on_spot(job, attempt, times).moved_to(end.becomes),
        live=None,
        extensions=job.extensions + extended,
        checkpointed=job.checkpointed + counted_time(job.spec, attempt, times.used),
        elastic=width_changes.after_attempt(job, attempt, end.reason.code, is_retried=end.retry is not None),
        comebacks=replace(job.comebacks, productive=job.comebacks.productive + times.trained - times.idle),
        spent=Spent(
            wasted=training_lost(job, end, times.lost),
            startups=startups_lost(job, attempt, stopped=end.becomes is JobState.PREEMPTED),
            cents=job.spent.cents + (attempt.bill.cents or 0),
            unpriced=job.spent.unpriced or attempt.bill.cents is None,
        ),
    )
    if end.comes_back:
        after = _waits_again(after, end, attempt, now=now)
        after = replace(after, score=score_after(job, after))
        after = after_end(job, after, attempt, end.reason.code, now=now)
    else:
        after = replace(after, reason=end.reason, ended_at=now)
    return Change(
        before=job,
        after=after,
        ended=attempt,
        leaves_warm=_left_warm(job, seen, attempt),
        keeps_nothing=_keeps_nothing(attempt, seen, now=now),
    )


def _left_warm(job: Job, seen: Observation | None, attempt: Attempt) -> WarmPool | None:
    """Return the warm pool that SageMaker kept of the attempt, if it reports one."""
    if seen is None or seen.warm_status != WARM_AVAILABLE or attempt.shape.warm_key is None:
        return None
    since = attempt.ended_at
    assert since is not None
    return WarmPool(
        training_job_name=attempt.training_job_name,
        team=job.spec.team,
        vector=attempt.vector,
        warm_key=attempt.shape.warm_key,
        since=since,
        expires_at=since + (attempt.keep_alive or timedelta()),
        job=job.name,
        month=attempt.claim.month,
        usd_per_hour=attempt.claim.usd_per_hour,
    )


_KEEPS_HOSTS = frozenset({"Completed", "Stopped"})
"""After a failure SageMaker may doubt the hosts. Source: SageMaker developer guide, managed warm pools."""
_WARM_TERMINATED = "Terminated"


def _keeps_nothing(attempt: Attempt, seen: Observation | None, *, now: datetime) -> bool:
    """Tell whether SageMaker kept no instances though it should: without WarmPoolStatus, or over at once."""
    if seen is None or not attempt.keep_alive or attempt.shape.warm_key is None:
        return False
    if seen.status not in _KEEPS_HOSTS or attempt.training_since is None or seen.ended_at is None:
        return False
    if seen.warm_status is None:
        return True
    if seen.warm_status != _WARM_TERMINATED:
        return False
    expired = now - seen.ended_at >= attempt.keep_alive
    return not seen.retained if seen.retained is not None else not expired


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Durations of an attempt that is over."""

    ended_at: datetime
    trained: timedelta
    """Time in status Training, all intervals together."""
    used: timedelta
    """Part of it that uses up the job's run time: what is safe in the newest checkpoint seen, as a rule."""
    idle: timedelta
    """Part of it since the idle alarm, if that is why it ended."""
    lost: timedelta
    """Part of it that must be repeated, or was useless."""
    unknown: timedelta
    """Part of it that may be in a checkpoint that was not seen."""


def _times(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Times:
    live = job.live_attempt
    ended_at = (seen.ended_at if seen else None) or now
    checkpointed = timedelta()
    if live.checkpoint.last is not None:
        checkpointed = trained_by(min(live.checkpoint.last, ended_at), live, seen)
    trained = trained_by(ended_at, live, seen)
    return Times(
        ended_at=ended_at,
        trained=trained,
        used=width_changes.used_up(end.reason.code, trained=trained, checkpointed=checkpointed),
        idle=min(_idle(live, end, ended_at), trained),
        lost=_lost(job, end, trained - checkpointed),
        unknown=_unknown(job, end, trained - checkpointed),
    )


def _idle(live: Attempt, end: End, ended_at: datetime) -> timedelta:
    if end.reason.code not in (ReasonCode.IDLE, ReasonCode.IDLE_REQUEUE):
        return timedelta()
    return live.watch.idle_until(ended_at)


def _lost(job: Job, end: End, unsaved: timedelta) -> timedelta:
    """Return unsaved training that is lost; of a requeued job 0 if it may be in an unseen checkpoint."""
    if end.becomes is JobState.FAILED:
        return unsaved
    return unsaved if end.comes_back and not _saves_unseen(job) else timedelta()


def _unknown(job: Job, end: End, unsaved: timedelta) -> timedelta:
    """Return training of a stopped job that saves checkpoints of which none was seen."""
    # A job that is stopped for good leaves what it has in its output, too; but whether that is of use is as
    # unknown. Completed work is never unknown, and failed work is lost.
    is_kept_or_lost = end.becomes in (JobState.COMPLETED, JobState.FAILED)
    return timedelta() if is_kept_or_lost or not _saves_unseen(job) else unsaved


def _saves_unseen(job: Job) -> bool:
    return job.spec.has_checkpoint and job.live_attempt.checkpoint.last is None


def _finished_attempt(job: Job, end: End, seen: Observation | None, times: Times) -> Attempt:
    live = job.live_attempt if seen is None else as_seen(job.live_attempt, seen)
    reason = end.of_attempt or end.reason
    return replace(
        live,
        trained=times.trained,
        statuses=_statuses(seen),
        speed=None if seen is None else seen.speed,
        end=AttemptEnd(at=times.ended_at, reason=reason, lost=max(times.lost, times.idle)),
        diagnosis=end.diagnosis,
        bill=_bill(job, live, seen, times, reason),
    )


def _statuses(seen: Observation | None) -> tuple[StatusStart, ...] | None:
    """Return all statuses, or None: a part of them would mislead."""
    statuses = () if seen is None else seen.statuses
    return statuses if 0 < len(statuses) <= MOST_STATUSES else None


def as_seen(live: Attempt, seen: Observation) -> Attempt:
    """Return the attempt with SageMaker's report on it."""
    progress = Progress(
        training_job_arn=seen.training_job_arn,
        status=seen.status,
        secondary_status=seen.secondary_status,
        training_since=seen.training_since or live.training_since,
    )
    return replace(
        live,
        progress=progress,
        spot=_spot_seen(live.spot, seen),
        shape=shape_taken(live.shape, seen),
    )


def _spot_seen(spot: SpotState, seen: Observation) -> SpotState:
    return replace(spot, interruptions=seen.interruptions)


def _bill(job: Job, attempt: Attempt, seen: Observation | None, times: Times, reason: Reason) -> Bill:
    """Return the cost of the attempt, by what it was spent on."""
    line = line_of(
        EndedAttempt(
            job=job.name,
            instances=attempt.shape.instances,
            usd_per_hour=attempt.claim.usd_per_hour,
            claimed_at=attempt.claim.at,
            ended_at=times.ended_at,
            trained=times.trained,
            up=seen.up if seen and attempt.capacity_type is CapacityType.SPOT else None,  # else all is billed
            billable=seen.billable if seen else None,
            idle=times.idle,
            lost=times.lost,
            lost_to=lost_to(reason.code),
            unknown=times.unknown,
            startup_saved=startup_saved(attempt),
        ),
    )
    return Bill(
        instance_seconds=line.instance_seconds,
        cents=line.cents,
        by={cause.value: cents for cause, cents in line.by.items() if cents},
        saved_cents=line.saved_cents,
        warm_saved_cents=line.warm_saved_cents or None,
    )


def _on_spot(job: Job, attempt: Attempt, times: Times) -> Job:
    """Add the attempt to the job's record of time on spot instances."""
    if attempt.capacity_type is not CapacityType.SPOT:
        return job
    record = replace(
        job.spot,
        interruptions=job.spot.interruptions + attempt.spot.interruptions,
        trained=job.spot.trained + times.trained,
        elapsed=job.spot.elapsed + max(times.ended_at - attempt.claim.at, timedelta()),
    )
    return replace(job, spot=record)


def _waits_again(job: Job, end: End, attempt: Attempt, *, now: datetime) -> Job:
    is_reclaimed = attempt.preempted_for is not None and attempt.preempted_for.reclaims is True
    is_preempted = end.reason.code is ReasonCode.PREEMPTION
    is_for_gpus = end.reason.code in {ReasonCode.IDLE_REQUEUE, ReasonCode.UNDERUSED_REQUEUE}
    idle_requeues = job.comebacks.idle_requeues + is_for_gpus
    reclaims = (job.comebacks.reclaims or 0) + (is_preempted and is_reclaimed) or None
    again = replace(
        job,
        attempt=job.attempt + 1,
        reason=None,
        waiting=None,
        spot=replace(job.spot, left=job.spot.left or end.moves),
        preemptions=job.preemptions + is_preempted,
        stopped_for=stopped_for(job, attempt),
        comebacks=replace(job.comebacks, idle_requeues=idle_requeues, reclaims=reclaims),
    )
    if end.retry is not None:
        return _retried(again, end.retry, now=now)
    if end.becomes is JobState.PREEMPTED or end.reason.code is ReasonCode.SPOT_FALLBACK:
        return again
    untrained = job.starts.no_capacity or 0
    return replace(
        again,
        not_before=now + backoff(job.spec.entry_id, untrained),
        starts=replace(job.starts, no_capacity=untrained + 1),
        waiting=Reason(code=ReasonCode.BACKOFF, message=end.reason.message),
    )


def _retried(job: Job, retry: Retry, *, now: datetime) -> Job:
    """Return the job with a charged retry, after which the next failure needs its productive time again."""
    comebacks = replace(
        job.comebacks,
        retries=job.comebacks.retries + 1,
        productive=timedelta(),
        halvings=job.comebacks.halvings + bool(retry.rewritten),
        rewritten={**job.comebacks.rewritten, **retry.rewritten},
    )
    return replace(job, not_before=now + retry.wait, waiting=retry.waiting, comebacks=comebacks)


def shape_taken(shape: Shape, seen: Observation) -> Shape:
    """Return the shape, cut to the type that SageMaker took of InstancePreferences once that is known."""
    if seen.selected_type is None:
        return shape
    took = {
        capacity: count
        for capacity, count in shape.vector.items()
        if capacity.instance_type == seen.selected_type
    }
    return replace(shape, vector=took or shape.vector)
