"""Every step of a job's life as a pure function: the job before, an instant, and the job after."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.jobs import (
    Attempt,
    End,
    Job,
    JobState,
    Observation,
    Reason,
    end_of,
)
from trainmaster.ports import Change

LEASE = timedelta(seconds=300)
"""A claim is safe from repair this long: more than the scheduler's timeout (120 s) and its SDK's retries."""
BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_MAX = timedelta(minutes=15)
MAX_UNKNOWN_ERRORS = 3
"""Errors we cannot classify before the job is given up."""
END_SLACK = timedelta(minutes=10)
"""SageMaker's own time around Training: start-up is not counted, stopping and upload come after."""


def claim(job: Job, *, training_job_name: str, now: datetime) -> Job:
    """The job holds its instances; the training job may be created until the lease runs out."""
    attempt = Attempt(
        number=job.attempt,
        training_job_name=training_job_name,
        capacity_type=job.spec.capacity_type,
        claimed_at=now,
        lease_until=now + LEASE,
    )
    return replace(job.moved_to(JobState.STARTING), live=attempt, waiting=None)


def recorded(job: Job, *, training_job_arn: str, now: datetime) -> Job:
    """SageMaker has the attempt."""
    live = replace(
        _live(job), training_job_arn=training_job_arn, status="InProgress", secondary_status="Starting"
    )
    running = job if job.state is not JobState.STARTING else job.moved_to(JobState.RUNNING)
    return replace(running, live=live, started_at=job.started_at or now, refused_starts=0, unknown_errors=0)


def put_back(job: Job, *, reason: Reason, now: datetime) -> Job:
    """The start was refused for now: the same attempt waits out a back-off, not charged."""
    return replace(
        job.moved_to(JobState.PENDING),
        live=None,
        not_before=now + backoff(job.spec.entry_id, job.refused_starts),
        waiting=Reason(code="backoff", message=reason.message),
        refused_starts=job.refused_starts + 1,
    )


def unclaimed(job: Job) -> Job:
    """The lease ran out without a training job: the same attempt waits again, at once."""
    return replace(job.moved_to(JobState.PENDING), live=None, not_before=None)


def puzzled(job: Job, *, message: str, now: datetime) -> Job:
    """An error nobody classified: counted, and after a few the job is given up."""
    if job.unknown_errors + 1 >= MAX_UNKNOWN_ERRORS:
        return failed(job, reason=Reason(code="failed-to-start", message=message), now=now)
    waiting = put_back(job, reason=Reason(code="unknown", message=message), now=now)
    return replace(waiting, unknown_errors=job.unknown_errors + 1)


def failed(job: Job, *, reason: Reason, now: datetime) -> Job:
    return replace(job.moved_to(JobState.FAILED), live=None, waiting=None, reason=reason, ended_at=now)


def unparked(job: Job) -> Job:
    """The back-off is over."""
    return replace(job, not_before=None, waiting=None)


def explained(job: Job, reason: Reason) -> Job:
    return replace(job, waiting=reason)


def preempted_for(job: Job, preemptor: str) -> Job:
    """Asked to stop so that another can start; it comes back."""
    reason = Reason(code="preemption", message=f"made room for {preemptor}")
    return replace(job.moved_to(JobState.PREEMPTING), reason=reason)


def stop_told(job: Job, *, told: bool = True) -> Job:
    """SageMaker took the stop; or, seen still running, did not."""
    return replace(job, live=replace(_live(job), stop_sent=told))


def idle(job: Job, *, since: datetime | None) -> Job:
    """Its alarm says that the GPUs do nothing; None: they work again."""
    return replace(job, live=replace(_live(job), idle_since=since))


def cancelled(job: Job, *, reason: Reason, now: datetime) -> Job:
    """A user's stop: at once while it waits, else as soon as SageMaker has stopped the attempt."""
    if job.is_live:
        stopping = job if job.state is JobState.STOPPING else job.moved_to(JobState.STOPPING)
        return replace(stopping, reason=reason)
    stopped = job.moved_to(JobState.STOPPED)
    return replace(stopped, waiting=None, not_before=None, reason=reason, ended_at=now)


def never_created(job: Job, *, now: datetime) -> Job:
    """Stopped by a user between claim and create, and the create never came."""
    return replace(job.moved_to(JobState.STOPPED), live=None, ended_at=now)


def observed(job: Job, seen: Observation | None, *, now: datetime) -> Change | None:
    """What news of the live attempt makes of the job; None when there is nothing new."""
    end = end_of(job, seen)
    if end is not None:
        return ended(job, end, seen, now=now)
    assert seen is not None
    live = replace(
        _live(job),
        training_job_arn=seen.training_job_arn,
        status=seen.status,
        secondary_status=seen.secondary_status,
        training_since=seen.training_since or _live(job).training_since,
    )
    started = recorded(job, training_job_arn=seen.training_job_arn, now=now)
    after = replace(started, live=live)
    return None if after == job else Change(before=job, after=after)


def ended(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Change:
    """The attempt is over: the slot is free, and the job is final or waits with the next attempt."""
    attempt = _finished_attempt(job, end, seen, now=now)
    after = replace(job.moved_to(end.becomes), live=None, wasted=_wasted(job, end, attempt))
    if end.becomes in (JobState.PENDING, JobState.PREEMPTED):
        after = _waits_again(after, end, now=now)
    else:
        after = replace(after, reason=end.reason, ended_at=now)
    return Change(before=job, after=after, ended=attempt)


def _finished_attempt(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Attempt:
    live = _live(job)
    if seen is None:
        return replace(live, ended_at=now, reason=end.reason)
    return replace(
        live,
        training_job_arn=seen.training_job_arn,
        status=seen.status,
        secondary_status=seen.secondary_status,
        training_since=seen.training_since or live.training_since,
        ended_at=seen.ended_at or now,
        reason=end.reason,
    )


def _waits_again(job: Job, end: End, *, now: datetime) -> Job:
    again = replace(job, attempt=job.attempt + 1, reason=None, waiting=None)
    if end.becomes is JobState.PREEMPTED:
        return replace(again, preemptions=job.preemptions + 1)
    wait = backoff(job.spec.entry_id, job.refused_starts)
    return replace(
        again,
        not_before=now + wait,
        refused_starts=job.refused_starts + 1,
        waiting=Reason(code="backoff", message=end.reason.message),
    )


def _wasted(job: Job, end: End, attempt: Attempt) -> dict[str, int]:
    """Without checkpoints a preempted attempt's training is lost whole."""
    lost = dict(job.wasted)
    if end.becomes is JobState.PREEMPTED and not job.spec.has_checkpoint and attempt.training_since:
        ended_at = attempt.ended_at or attempt.training_since
        seconds = int((ended_at - attempt.training_since).total_seconds())
        lost[end.reason.code] = lost.get(end.reason.code, 0) + max(seconds, 0)
    return lost


def ends_by(job: Job) -> datetime | None:
    """When the live attempt's instances are free at the latest; None before it trains.

    Spot counts MaxWait from creation, on-demand MaxRuntime from the start of Training.
    """
    live = job.live
    if live is None:
        return None
    if job.spec.max_wait is not None:
        return live.claimed_at + job.spec.max_wait + END_SLACK
    return None if live.training_since is None else live.training_since + job.spec.max_runtime + END_SLACK


def backoff(entry_id: str, refused: int) -> timedelta:
    """Full jitter (uniform up to the exponential limit), drawn from a hash so that it can be repeated."""
    ceiling: timedelta = min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** min(refused, 10))
    digest = hashlib.blake2b(f"{entry_id}:{refused}".encode(), digest_size=7).digest()
    return max(timedelta(seconds=1), ceiling * (int.from_bytes(digest, "big") / 2**56))


def _live(job: Job) -> Attempt:
    assert job.live is not None, f"{job.name} has no live attempt"
    return job.live
