"""The edge at which a period begins: jobs that were there already enter it with what was left of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster_client.simulate.engine.past_jobs import PastAttempt, PastJob
from trainmaster_client.simulate.histories.line_problems import count_of
from trainmaster_client.simulate.histories.past_tasks import order_of_job

WAITING_SINCE = timedelta(seconds=1)
"""Time after the period's begin at which waiting jobs enter, behind those that held their instances."""
_APART = timedelta(milliseconds=1)
_NOTHING = timedelta()


def carried_in(jobs: Sequence[PastJob], begins: datetime) -> tuple[tuple[PastJob, ...], tuple[str, ...]]:
    """Return the jobs, none submitted before ``begins``, and what was assumed of those that were.

    Jobs that ended before are not in the record. With those that competed with them the queue of that time
    could not be replayed, so what held instances keeps them, and what waited enters in its order.
    """
    running = [job for job in jobs if job.submitted_at < begins and _live_at(job, begins) is not None]
    waiting = [job for job in jobs if job.submitted_at < begins and _live_at(job, begins) is None]
    entered = [_continued(job, begins) for job in running]
    entered += [
        _rest(job, begins, begins + WAITING_SINCE + number * _APART) for number, job in enumerate(waiting)
    ]
    others = [job for job in jobs if job.submitted_at >= begins]
    return tuple(sorted([*entered, *others], key=order_of_job)), tuple(_sentences(len(running), len(waiting)))


def _sentences(running: int, waiting: int) -> Iterator[str]:
    if running:
        yield (
            f"{count_of(running, 'job')} held instances when the period began: submitted at that instant "
            "here, with the training that was left."
        )
    if waiting:
        yield (
            f"{count_of(waiting, 'job')} waited when the period began: submitted then here, in their order; "
            "what they had waited until then does not count."
        )


def _live_at(job: PastJob, instant: datetime) -> PastAttempt | None:
    return next(
        (
            attempt
            for attempt in job.attempts
            if attempt.started_at < instant and (attempt.ended_at or instant) >= instant
        ),
        None,
    )


def _continued(job: PastJob, begins: datetime) -> PastJob:
    """Continue a running job; its start-up counts as training done, so that it ends when it did."""
    live = _live_at(job, begins)
    assert live is not None
    rest = _rest(job, begins, begins)
    if live.training_since is None or live.training_since >= begins:
        return rest
    return replace(rest, trains_for=max(rest.trains_for - (job.cold_start or _NOTHING), _NOTHING))


def _rest(job: PastJob, begins: datetime, submitted_at: datetime) -> PastJob:
    """Return the job without what was before the period."""
    done = sum((_counted_by(attempt, begins) * job.speed_of(attempt) for attempt in job.attempts), _NOTHING)
    later = tuple(
        attempt for attempt in job.attempts if attempt.ended_at is None or attempt.ended_at >= begins
    )
    withdrawn = None if job.withdrawn_after is None else job.submitted_at + job.withdrawn_after
    return replace(
        job,
        submitted_at=submitted_at,
        trains_for=max(job.trains_for - done, _NOTHING),
        breaks=job.breaks if len(later) == len(job.attempts) else (),
        withdrawn_after=None if withdrawn is None else max(withdrawn - submitted_at, _NOTHING),
        attempts=tuple(_cut(attempt, submitted_at) for attempt in later),
    )


def _counted_by(attempt: PastAttempt, instant: datetime) -> timedelta:
    if attempt.training_since is None or attempt.training_since >= instant:
        return _NOTHING
    if attempt.ended_at is not None and attempt.ended_at < instant:
        return max(attempt.ended_at - attempt.training_since - attempt.lost, _NOTHING)
    return instant - attempt.training_since


def _cut(attempt: PastAttempt, instant: datetime) -> PastAttempt:
    training_since = attempt.training_since
    return replace(
        attempt,
        started_at=max(attempt.started_at, instant),
        training_since=None if training_since is None else max(training_since, instant),
    )
