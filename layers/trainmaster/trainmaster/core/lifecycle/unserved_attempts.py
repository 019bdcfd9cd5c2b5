"""Attempts that did not train though others were stopped for them: their job then stops no other for a while.

The claim records that instances were made free for the attempt. Whatever ends the attempt reads that record:
the transaction that frees its instances again also counts the preemption as futile. A crash can thus neither
lose nor repeat the count, and the next pass already reads it. Each start also teaches how likely AWS is to
have no instances of its types.
"""

from dataclasses import replace
from datetime import datetime

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.futile_preemptions import after_another
from trainmaster.core.jobs.instances import Choice, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.start_records import StartLesson


def with_room_made(job: Job) -> Job:
    """Record that other jobs were stopped for the attempt that comes now."""
    return replace(job, made_room_for=job.attempt)


def with_training_seen(job: Job) -> Job:
    """Forget earlier futile preemptions, as AWS serves the job."""
    if job.futile is None and job.made_room_for is None and job.starts.no_capacity is None:
        return job
    return replace(job, futile=None, made_room_for=None, starts=replace(job.starts, no_capacity=None))


def after_end(before: Job, after: Job, ended: Attempt, code: Code, *, now: datetime) -> Job:
    """Count the preemption as futile if AWS or the attempt itself is why it never trained.

    A stop of ours says nothing about what AWS would have done: the next attempt may preempt as before.

    Args:
        before: The job with the attempt live.
        after: The job, which waits again or is over.
        ended: The attempt.
        code: Reason code of its end.
        now: When the end is recorded.
    """
    if ended.training_since is not None:
        return with_training_seen(after)
    if after.state is not JobState.PENDING or code is ReasonCode.RESTORED:
        return after
    return _counted(before, after, vector=ended.vector, ended_at=ended.ended_at or now, now=now)


def after_put_off(before: Job, after: Job, *, now: datetime) -> Job:
    """Count the preemption as futile after a start that AWS refused, if the job waits out a back-off for it.

    One that waits in its turn at once (throttling, a lease that ran out) keeps the note of its attempt.
    """
    if not after.is_waiting or after.not_before is None:
        return after
    return _counted(before, after, vector=before.live_attempt.vector, ended_at=now, now=now)


def after_hold_ran_out(job: Job, vector: Vector, *, now: datetime) -> Job:
    """Count the preemption as futile, as the job did not even start in time."""
    return _futile(job, vector=vector, ended_at=now, now=now)


def _counted(before: Job, after: Job, *, vector: Vector, ended_at: datetime, now: datetime) -> Job:
    if before.made_room_for != before.attempt:
        return after
    return _futile(after, vector=vector, ended_at=ended_at, now=now)


def _futile(job: Job, *, vector: Vector, ended_at: datetime, now: datetime) -> Job:
    choice = job.spec.choice if len(vector) > 1 else Choice.FIRST_FIT
    futile = after_another(job.futile, vector=vector, choice=choice, ended_at=ended_at, now=now)
    return replace(job, futile=futile, made_room_for=None)


def start_lesson(change: Change, *, at: datetime) -> StartLesson | None:
    """Return how a start ended; None if the change does not show it.

    An attempt counts once: when it is first seen to train, or at its end if it never did. One that was
    claimed with a warm pool has its instances already, and tells nothing about those that AWS has left.

    Args:
        change: A change of a job, as it is written.
        at: When it is written.
    """
    before, attempt = change.before.live, change.ended or change.after.live
    if before is None or attempt is None or attempt.number != before.number:
        return None
    if before.training_since is not None or attempt.claim.reuses is not None or attempt.warm_start:
        return None
    if attempt.training_since is not None:
        return StartLesson(vector=attempt.vector, trained=True, at=at)
    reason = None if change.ended is None else change.ended.reason
    if reason is None or reason.code is not ReasonCode.CAPACITY:
        return None
    return StartLesson(vector=attempt.vector, trained=False, at=at)
