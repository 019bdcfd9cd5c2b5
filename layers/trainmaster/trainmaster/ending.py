"""What the end of an attempt makes of its job: final, or waiting again; the bill, and what was lost."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.ends import End, Observation
from trainmaster.jobs import Attempt, Job, JobState, Reason
from trainmaster.ledger import EndedAttempt, line_of, lost_to
from trainmaster.ports import Change
from trainmaster.runtime import runtime_left
from trainmaster.scheduling.snapshot import WarmPool
from trainmaster.shapes import Shape

BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_MAX = timedelta(minutes=15)
WARM_AVAILABLE = "Available"
"""WarmPoolStatus.Status of a pool that waits for the next job. Source: SageMaker API, WarmPoolStatus."""


def ended(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Change:
    """The attempt is over: the slot is free, and the job is final or waits with the next attempt."""
    attempt = _finished_attempt(job, end, seen, now=now)
    _, extended = runtime_left(job)  # as at the claim: only attempts that came to be use an extension up
    after = replace(
        job.moved_to(end.becomes),
        live=None,
        extensions=job.extensions + extended,
        wasted=_wasted(job, end, attempt),
        survived=job.survived + _survived(attempt),
        cents=job.cents + (attempt.cents or 0),
        unpriced=job.unpriced or attempt.cents is None,
    )
    if end.becomes in (JobState.PENDING, JobState.PREEMPTED):
        after = _waits_again(after, end, now=now)
    else:
        after = replace(after, reason=end.reason, ended_at=now)
    return Change(before=job, after=after, ended=attempt, leaves_warm=_left_warm(job, seen, attempt))


def _left_warm(job: Job, seen: Observation | None, attempt: Attempt) -> WarmPool | None:
    """What SageMaker kept of the attempt: only its word for it counts."""
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
        month=attempt.month,
        usd_per_hour=attempt.usd_per_hour,
    )


def _finished_attempt(job: Job, end: End, seen: Observation | None, *, now: datetime) -> Attempt:
    live = live_attempt(job)
    if seen is None:
        return _billed(job, end, replace(live, ended_at=now, reason=end.reason), None)
    attempt = replace(
        live,
        training_job_arn=seen.training_job_arn,
        status=seen.status,
        secondary_status=seen.secondary_status,
        training_since=seen.training_since or live.training_since,
        ended_at=seen.ended_at or now,
        reason=end.reason,
        shape=shape_taken(live.shape, seen),
    )
    return _billed(job, end, attempt, seen.billable)


def _billed(job: Job, end: End, attempt: Attempt, billable: timedelta | None) -> Attempt:
    """With what it cost, and what that was spent on."""
    assert attempt.ended_at is not None
    line = line_of(
        EndedAttempt(
            job=job.name,
            instances=attempt.shape.instances,
            usd_per_hour=attempt.usd_per_hour,
            claimed_at=attempt.claimed_at,
            ended_at=attempt.ended_at,
            training_since=attempt.training_since,
            billable=billable,
            lost=_lost(job, end, attempt),
            lost_to=lost_to(end.reason.code),
        ),
    )
    by = {cause.value: cents for cause, cents in line.by.items() if cents}
    return replace(attempt, instance_seconds=line.instance_seconds, cents=line.cents, cents_by=by)


def _lost(job: Job, end: End, attempt: Attempt) -> timedelta:
    """Training that has to be done again; not guessed where nobody saw the job's checkpoints."""
    unknown = job.spec.has_checkpoint and attempt.last_checkpoint is None
    if unknown or end.becomes not in (JobState.PENDING, JobState.PREEMPTED, JobState.FAILED):
        return timedelta()
    return _trained(attempt) - _survived(attempt)


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
    """With what a job that comes back has to train again."""
    wasted = dict(job.wasted)
    seconds = int(_lost(job, end, attempt).total_seconds())
    if seconds > 0 and end.becomes is not JobState.FAILED:
        wasted[end.reason.code] = wasted.get(end.reason.code, 0) + seconds
    return wasted


def _trained(attempt: Attempt) -> timedelta:
    if attempt.training_since is None or attempt.ended_at is None:
        return timedelta()
    return max(attempt.ended_at - attempt.training_since, timedelta())


def _survived(attempt: Attempt) -> timedelta:
    """Training that is safe in the newest checkpoint seen; nothing where none was seen."""
    if attempt.training_since is None or attempt.last_checkpoint is None:
        return timedelta()
    return min(max(attempt.last_checkpoint - attempt.training_since, timedelta()), _trained(attempt))


def shape_taken(shape: Shape, seen: Observation) -> Shape:
    """With InstancePreferences: only what SageMaker took, once it has said so."""
    if seen.selected_type is None:
        return shape
    took = {
        capacity: count
        for capacity, count in shape.vector.items()
        if capacity.instance_type == seen.selected_type
    }
    return replace(shape, vector=took or shape.vector)


def backoff(entry_id: str, refused: int) -> timedelta:
    """Full jitter (uniform up to the exponential limit), drawn from a hash so that it can be repeated."""
    ceiling: timedelta = min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** min(refused, 10))
    digest = hashlib.blake2b(f"{entry_id}:{refused}".encode(), digest_size=7).digest()
    return max(timedelta(seconds=1), ceiling * (int.from_bytes(digest, "big") / 2**56))


def live_attempt(job: Job) -> Attempt:
    assert job.live is not None, f"{job.name} has no live attempt"
    return job.live
