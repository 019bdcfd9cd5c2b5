"""The trace as a history that the product replays, and each attempt of a replay as a row of the report."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from trainmaster.core.jobs.failures import FailureClass
from trainmaster_client.simulate.engine.past_jobs import AccountBounds, Break, History, PastJob
from trainmaster_client.simulate.engine.replays import ReplayedAttempt
from trainmaster_client.simulate.histories.trace_draws import PRIORITIES

from benchmarks.replay.elasticity import Asks, Elasticity
from benchmarks.replay.jobs import POOLS, TraceJob

BEGIN = datetime(2017, 10, 18, tzinfo=UTC)
"""Second 0 of a trace; any would do."""


class Row(NamedTuple):
    """An attempt, as it went."""

    job_id: str
    attempt: int
    pool: str
    instances: int
    start_s: int
    """Second from which it holds its instances."""
    train_s: int
    """Second in which it began to train; if it never did, the one in which it was stopped."""
    end_s: int
    """Second from which its instances are free."""
    end: str
    """``completed``, or ``preempted`` or ``resized``: then it was stopped STOP_S before ``end_s``."""
    lost_s: int
    """Training that has to be done again."""
    warm: bool
    """Whether it started in a warm pool."""


def instant(second: float) -> datetime:
    return BEGIN + timedelta(seconds=second)


def history_of(
    jobs: Iterable[TraceJob], account: AccountBounds | None = None, *, asks: Asks = Asks.WIDTHS
) -> History:
    past = tuple(_past(job) if job.elastic is None else _elastic(job, job.elastic, asks) for job in jobs)
    return History(source="trace", begins=BEGIN, jobs=past, account=account or AccountBounds())


def _past(job: TraceJob) -> PastJob:
    every = job.checkpoint_every_s
    return PastJob(
        name=job.job_id,
        team=job.team,
        submitted_by=job.user or job.team,
        submitted_at=instant(job.submit_s),
        pool=job.pool,
        instances={POOLS[job.pool].type: job.instances},
        capacity_type="on-demand",
        priority=PRIORITIES[job.klass],
        max_runtime=timedelta(seconds=job.requested_s),
        trains_for=timedelta(seconds=job.duration_s),
        end=job.end,
        saves_every=None if every is None else timedelta(seconds=every),
        breaks=_breaks(job),
    )


def _elastic(job: TraceJob, elasticity: Elasticity, asks: Asks) -> PastJob:
    """Return an elastic job as it asks: it saves when it is stopped, whatever it asks for."""
    rigid = replace(_past(job), saves_when_stopped=True)
    if asks is Asks.LEAST:
        return rigid
    speed = elasticity.most_speed
    return replace(
        rigid,
        instances={POOLS[job.pool].type: elasticity.widths.largest},
        trains_for=timedelta(seconds=job.best_s),
        max_runtime=timedelta(seconds=round(job.requested_s / speed)),
        breaks=tuple(replace(told, after=told.after / speed) for told in rigid.breaks),
        elastic=elasticity.as_past() if asks is Asks.WIDTHS else None,
    )


def _breaks(job: TraceJob) -> tuple[Break, ...]:
    after = job.breaks_after_s
    return () if after is None else (Break(after=timedelta(seconds=after), code=FailureClass.SERVICE.value),)


def rows_of(attempts: Iterable[ReplayedAttempt]) -> list[Row]:
    return [
        Row(
            job_id=attempt.job,
            attempt=attempt.attempt,
            pool=attempt.pool,
            instances=attempt.instances,
            start_s=attempt.start_s,
            train_s=attempt.train_s,
            end_s=attempt.end_s,
            end=attempt.end,
            lost_s=attempt.lost_s,
            warm=attempt.warm,
        )
        for attempt in attempts
    ]
