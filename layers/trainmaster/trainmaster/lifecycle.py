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
    Shape,
    end_of,
)
from trainmaster.ledger import EndedAttempt, line_of, lost_to
from trainmaster.ports import Change
from trainmaster.scheduling.snapshot import WaitingJob, WarmPool, known_as

LEASE = timedelta(seconds=300)
"""A claim is safe from repair this long: more than the scheduler's timeout (120 s) and its SDK's retries."""
BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_MAX = timedelta(minutes=15)
MAX_UNKNOWN_ERRORS = 3
"""Errors we cannot classify before the job is given up."""
WARM_AVAILABLE = "Available"
"""WarmPoolStatus.Status of a pool that waits for the next job. Source: SageMaker API, WarmPoolStatus."""
END_SLACK = timedelta(minutes=10)
"""SageMaker's own time around Training: start-up is not counted, stopping and upload come after."""


LEAST_RUNTIME = timedelta(minutes=30)
"""What an attempt gets even if less is left of the job's MaxRuntimeInSeconds: enough to get anywhere."""
MAX_EXTENSIONS = 3
"""Attempts that get more than what is left; then the rest it is."""
SHORTEST_RUNTIME = timedelta(minutes=1)


def claim(job: Job, attempt: Attempt) -> Job:
    """The job holds its instances; the training job may be created until the lease runs out."""
    assert attempt.max_runtime == runtime_left(job)[0], attempt
    return replace(job.moved_to(JobState.STARTING), live=attempt, waiting=None)


def runtime_left(job: Job) -> tuple[timedelta, bool]:
    """MaxRuntime of the next attempt, and whether that is more than what is left of the job's.

    Run time is the job's: what survived in checkpoints is used up.
    """
    left = job.spec.max_runtime - job.survived
    if left >= min(LEAST_RUNTIME, job.spec.max_runtime):
        return left, False
    if job.extensions < MAX_EXTENSIONS:
        return min(LEAST_RUNTIME, job.spec.max_runtime), True
    return max(left, SHORTEST_RUNTIME), False


def recorded(job: Job, *, training_job_arn: str, now: datetime) -> Job:
    """SageMaker has the attempt."""
    live = replace(
        _live(job), training_job_arn=training_job_arn, status="InProgress", secondary_status="Starting"
    )
    running = job if job.state is not JobState.STARTING else job.moved_to(JobState.RUNNING)
    return replace(running, live=live, started_at=job.started_at or now, refused_starts=0, unknown_errors=0)


def refused_by_account(job: Job, reason: Reason) -> Job:
    """The account allows no more of the type: the same attempt waits in its turn, not charged."""
    return replace(job.moved_to(JobState.PENDING), live=None, not_before=None, waiting=reason)


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


def preempted_for(job: Job, preemptor: WaitingJob) -> Job:
    """Asked to stop so that another can start; it comes back."""
    message = f"made room for {known_as(preemptor, to=job.spec.team)}"
    live = replace(_live(job), taken_by=preemptor.name, taken_by_team=preemptor.team)
    reason = Reason(code="preemption", message=message)
    return replace(job.moved_to(JobState.PREEMPTING), live=live, reason=reason)


def stop_told(job: Job, *, told: bool = True) -> Job:
    """SageMaker took the stop; or, seen still running, did not."""
    return replace(job, live=replace(_live(job), stop_sent=told))


def idle(job: Job, *, since: datetime | None) -> Job:
    """Its alarm says that the GPUs do nothing; None: they work again."""
    return replace(job, live=replace(_live(job), idle_since=since))


def checkpoint_seen(job: Job, written_at: datetime | None) -> Job:
    """Somebody looked for its newest checkpoint; one older than the known one says nothing."""
    live = _live(job)
    known = [at for at in (written_at, live.last_checkpoint) if at is not None]
    return replace(job, live=replace(live, last_checkpoint=max(known, default=None)))


def reuse_settled(job: Job, left: Observation | None) -> Change:
    """What became of the warm pool that the attempt was claimed with, now that the attempt trains.

    If SageMaker started it elsewhere and still keeps the pool, the pool is counted again.

    Args:
        job: Its live attempt has ``reuses``.
        left: The training job whose warm pool it is.
    """
    after = replace(job, live=replace(_live(job), reuses=None))
    return Change(before=job, after=after, leaves_warm=_still_warm(job, left))


def claim_undone(job: Job, after: Job, left: Observation | None) -> Change:
    """The attempt was not created: its instances are free, and the warm pool it was to take is warm again.

    Args:
        job: With the live attempt.
        after: Without it.
        left: As for ``reuse_settled``; None too where the attempt was claimed without a warm pool.
    """
    live = _live(job)
    never = replace(live, ended_at=after.ended_at, reason=after.reason, cents=0)
    return Change(
        before=job, after=after, ended=never if after.is_final else None, leaves_warm=_still_warm(job, left)
    )


def _still_warm(job: Job, left: Observation | None) -> WarmPool | None:
    """The warm pool that the live attempt was claimed with, if SageMaker keeps it still."""
    live = _live(job)
    if left is None or left.warm_status != WARM_AVAILABLE or left.ended_at is None:
        return None
    assert live.shape.warm_key is not None, live
    return WarmPool(
        training_job_name=left.training_job_name,
        team=job.spec.team,
        vector=live.vector,
        warm_key=live.shape.warm_key,
        since=left.ended_at,
        expires_at=left.ended_at + (live.keep_alive or timedelta()),
        job=job.name,
        month=live.month,
        usd_per_hour=live.usd_per_hour,
        billed_from=live.claimed_at,
    )


def held(job: Job, reason: Reason) -> Job:
    """Somebody holds it: only a release brings it back into its turn."""
    return replace(job.moved_to(JobState.HELD), not_before=None, waiting=reason)


def released(job: Job) -> Job:
    """Back in its turn, with the attempts it has behind it."""
    back = JobState.PREEMPTED if job.preemptions else JobState.PENDING
    return replace(job.moved_to(back), waiting=None)


def reranked(job: Job, *, priority: int, score: int, ranked_by: str) -> Job:
    """Another priority, or another order in its pool."""
    return replace(job, priority=priority, score=score, ranked_by=ranked_by)


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
        shape=_taken(_live(job).shape, seen),
    )
    started = recorded(job, training_job_arn=seen.training_job_arn, now=now)
    after = replace(started, live=live)
    return None if after == job else Change(before=job, after=after)


def _taken(shape: Shape, seen: Observation) -> Shape:
    """With InstancePreferences: only what SageMaker took, once it has said so."""
    if seen.selected_type is None:
        return shape
    took = {
        capacity: count
        for capacity, count in shape.vector.items()
        if capacity.instance_type == seen.selected_type
    }
    return replace(shape, vector=took or shape.vector)


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
    live = _live(job)
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
        shape=_taken(live.shape, seen),
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


def ends_by(job: Job) -> datetime | None:
    """When the live attempt's instances are free at the latest; None before it trains.

    Spot counts MaxWait from creation, on-demand MaxRuntime from the start of Training.
    """
    live = job.live
    if live is None:
        return None
    if live.max_wait is not None:
        return live.claimed_at + live.max_wait + END_SLACK
    return None if live.training_since is None else live.training_since + live.max_runtime + END_SLACK


def backoff(entry_id: str, refused: int) -> timedelta:
    """Full jitter (uniform up to the exponential limit), drawn from a hash so that it can be repeated."""
    ceiling: timedelta = min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** min(refused, 10))
    digest = hashlib.blake2b(f"{entry_id}:{refused}".encode(), digest_size=7).digest()
    return max(timedelta(seconds=1), ceiling * (int.from_bytes(digest, "big") / 2**56))


def _live(job: Job) -> Attempt:
    assert job.live is not None, f"{job.name} has no live attempt"
    return job.live
