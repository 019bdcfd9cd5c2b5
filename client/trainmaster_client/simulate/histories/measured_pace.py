"""How long SageMaker took to start jobs up and to stop them, as exported attempts show it."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from trainmaster.core.jobs.reason_codes import ReasonCode

from trainmaster_client.simulate.engine.past_jobs import STOPPED_BY_QUEUE, Pace, PastAttempt
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob

FOLLOWS_WITHIN = timedelta(seconds=5)
"""A preemptor starts so soon after its victim's end."""
CLOCKS_APART = timedelta(seconds=1)
"""Or so long before it: its claim has the scheduler's clock, the end SageMaker's."""
LONGEST_STOP = timedelta(minutes=5)
"""SageMaker kills after 120 s; what comes later was not waited for alone."""
STARTUP_NEWS = (0.25, 0.7)
"""About where Preparing ends and Downloading begins."""
_NOTHING = timedelta()
_Started: TypeAlias = tuple[datetime, datetime]
"""When an attempt started, and when its job was submitted."""


def measured_pace(jobs: Sequence[ExportedJob]) -> Pace:
    """Measure medians of what there is; take the simulator's assumptions for the rest."""
    usual, attempts = Pace(), [attempt for job in jobs for attempt in job.attempts]
    upload = _median(_uploads(attempts), usual.upload)
    return Pace(
        cold_start=_median(_starts(attempts, warm=False), usual.cold_start),
        warm_start=_median(_starts(attempts, warm=True), usual.warm_start),
        restore=_median(_restores(jobs), usual.restore),
        stop=_median(_stops(attempts), usual.stop),
        early_stop=_median(_early_stops(jobs), usual.early_stop),
        replaced=_median(_replaced(attempts, upload), usual.replaced),
        startup_news=STARTUP_NEWS if attempts else (),
        upload=upload,
    )


def past_attempt(exported: ExportedAttempt, *, upload: timedelta = _NOTHING) -> PastAttempt:
    """Convert an attempt; ``upload`` is the usual one, at the end of attempts that complete."""
    return PastAttempt(
        started_at=exported.started_at,
        training_since=exported.training_since,
        ended_at=exported.ended_at,
        end=exported.end,
        lost=exported.lost,
        warm=exported.warm_start,
        trained=exported.trained,
        interrupted_for=_interrupted_for(exported, upload),
        statuses=exported.statuses,
        plan=exported.plan,
        instances=exported.instances,
    )


def _interrupted_for(exported: ExportedAttempt, upload: timedelta) -> timedelta | None:
    """Return the rest of its time between Training and the end, by interruption; None if not known."""
    if (
        not exported.interruptions
        or exported.training_since is None
        or exported.ended_at is None
        or exported.trained is None
    ):
        return None
    if exported.end != ReasonCode.COMPLETED:  # then its stop is in it too
        return None
    return (
        max(exported.ended_at - exported.training_since - exported.trained - upload, _NOTHING)
        / exported.interruptions
    )


def _median(lengths: Iterable[timedelta], usual: timedelta) -> timedelta:
    values = sorted(lengths)
    return max(statistics.median_high(values), _NOTHING) if values else usual


def _starts(attempts: Iterable[ExportedAttempt], *, warm: bool) -> Iterator[timedelta]:
    for attempt in attempts:
        if attempt.training_since is not None and attempt.warm_start is warm:
            yield attempt.training_since - attempt.started_at


def _restores(jobs: Iterable[ExportedJob]) -> Iterator[timedelta]:
    """Yield how much longer a job's later start on new instances took than its first one."""
    for job in jobs:
        cold = list(_starts(job.attempts, warm=False))
        if job.saves_checkpoints:
            yield from (later - cold[0] for later in cold[1:])


def _stops(attempts: Iterable[ExportedAttempt]) -> Iterator[timedelta]:
    """Yield the times between the stop, which ends Training, and the end."""
    for attempt in attempts:
        took = past_attempt(attempt).stopped_in
        was_trained = attempt.training_since is not None and not attempt.interruptions
        if attempt.end in STOPPED_BY_QUEUE and was_trained and took is not None:
            yield took


def _uploads(attempts: Iterable[ExportedAttempt]) -> Iterator[timedelta]:
    """Yield the times between the end of training and the end."""
    for attempt in attempts:
        took = past_attempt(attempt).stopped_in
        if attempt.end == ReasonCode.COMPLETED and not attempt.interruptions and took is not None:
            yield took


def _replaced(attempts: Iterable[ExportedAttempt], upload: timedelta) -> Iterator[timedelta]:
    """Yield the times between an interruption and other instances."""
    for attempt in attempts:
        took = _interrupted_for(attempt, upload)
        if took is not None and attempt.training_since is not None:
            yield max(took - (attempt.training_since - attempt.started_at), _NOTHING)


def _early_stops(jobs: Sequence[ExportedJob]) -> Iterator[timedelta]:
    """Yield stop times of attempts that did not train: up to the start of the job that followed.

    A job that arrives in a full pool preempts at once, so its submission is when the stop was asked for; of
    victims of jobs that waited before nothing is known.
    """
    started = sorted((attempt.started_at, job.submitted_at) for job in jobs for attempt in job.attempts[:1])
    for job in jobs:
        for attempt in job.attempts:
            if attempt.training_since is not None or attempt.ended_at is None:
                continue
            if attempt.statuses:
                stopped = past_attempt(attempt).stopped_in
                yield from () if stopped is None else (stopped,)
            elif attempt.end in STOPPED_BY_QUEUE:
                yield from _asked_before(attempt.started_at, attempt.ended_at, started)


def _asked_before(since: datetime, ended_at: datetime, started: Sequence[_Started]) -> Iterator[timedelta]:
    submissions = [
        submitted_at
        for at, submitted_at in started
        if ended_at - CLOCKS_APART <= at <= ended_at + FOLLOWS_WITHIN
        and max(since, ended_at - LONGEST_STOP) <= submitted_at < ended_at
    ]
    if submissions:
        yield ended_at - max(submissions)
