"""How long SageMaker took to start jobs up and to stop them, as exported attempts show it."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from trainmaster.core.jobs.reason_codes import ReasonCode

from trainmaster_client.simulate.engine.past_jobs import Pace, PastAttempt
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
    """Medians of what there is; the simulator's assumptions of what there is not."""
    usual, attempts = Pace(), [one for job in jobs for one in job.attempts]
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


def past_attempt(one: ExportedAttempt, *, upload: timedelta = _NOTHING) -> PastAttempt:
    """``upload``: usual, at the end of attempts that complete."""
    return PastAttempt(
        started_at=one.started_at,
        training_since=one.training_since,
        ended_at=one.ended_at,
        end=one.end,
        lost=one.lost,
        warm=one.warm_start,
        trained=one.trained,
        interrupted_for=_interrupted_for(one, upload),
        statuses=one.statuses,
    )


def _interrupted_for(one: ExportedAttempt, upload: timedelta) -> timedelta | None:
    """What is left of its time from Training to the end, by interruption."""
    if not one.interruptions or one.training_since is None or one.ended_at is None or one.trained is None:
        return None
    if one.end != ReasonCode.COMPLETED:  # then its stop is in it too
        return None
    return max(one.ended_at - one.training_since - one.trained - upload, _NOTHING) / one.interruptions


def _median(found: Iterable[timedelta], usual: timedelta) -> timedelta:
    values = sorted(found)
    return max(statistics.median_high(values), _NOTHING) if values else usual


def _starts(attempts: Iterable[ExportedAttempt], *, warm: bool) -> Iterator[timedelta]:
    for one in attempts:
        if one.training_since is not None and one.warm_start is warm:
            yield one.training_since - one.started_at


def _restores(jobs: Iterable[ExportedJob]) -> Iterator[timedelta]:
    """What a job's later start on new instances took more than its first one."""
    for job in jobs:
        cold = list(_starts(job.attempts, warm=False))
        if job.saves_checkpoints:
            yield from (later - cold[0] for later in cold[1:])


def _stops(attempts: Iterable[ExportedAttempt]) -> Iterator[timedelta]:
    """From the stop, which ends Training, to the end."""
    for one in attempts:
        took = past_attempt(one).stopped_in
        was_trained = one.training_since is not None and not one.interruptions
        if one.end == ReasonCode.PREEMPTION and was_trained and took is not None:
            yield took


def _uploads(attempts: Iterable[ExportedAttempt]) -> Iterator[timedelta]:
    """From the end of training to the end."""
    for one in attempts:
        took = past_attempt(one).stopped_in
        if one.end == ReasonCode.COMPLETED and not one.interruptions and took is not None:
            yield took


def _replaced(attempts: Iterable[ExportedAttempt], upload: timedelta) -> Iterator[timedelta]:
    """From an interruption until there were other instances."""
    for one in attempts:
        took = _interrupted_for(one, upload)
        if took is not None and one.training_since is not None:
            yield max(took - (one.training_since - one.started_at), _NOTHING)


def _early_stops(jobs: Sequence[ExportedJob]) -> Iterator[timedelta]:
    """Of attempts that did not train: from the submission of the job that started as soon as they had ended.

    A job that arrives in a full pool preempts at once, so its submission is when the stop was asked for; of
    victims of jobs that waited before nothing is known.
    """
    started = sorted((one.started_at, job.submitted_at) for job in jobs for one in job.attempts[:1])
    for job in jobs:
        for one in job.attempts:
            if one.training_since is not None or one.ended_at is None:
                continue
            if one.statuses:
                stopped = past_attempt(one).stopped_in
                yield from () if stopped is None else (stopped,)
            elif one.end == ReasonCode.PREEMPTION:
                yield from _asked_before(one.started_at, one.ended_at, started)


def _asked_before(since: datetime, ended_at: datetime, started: Sequence[_Started]) -> Iterator[timedelta]:
    asked = [
        submitted_at
        for at, submitted_at in started
        if ended_at - CLOCKS_APART <= at <= ended_at + FOLLOWS_WITHIN
        and max(since, ended_at - LONGEST_STOP) <= submitted_at < ended_at
    ]
    if asked:
        yield ended_at - max(asked)
