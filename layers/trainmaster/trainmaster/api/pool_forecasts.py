"""Forecast when the jobs of a pool start: every answer with an estimate quotes this one forecast."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from trainmaster.api.request_context import RequestContext
from trainmaster.core.planning.fair_share import ranked, shares_seen, shifted, shifts_of
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy

if TYPE_CHECKING:
    from trainmaster.core.forecast.queue_estimate import WholeQueue
    from trainmaster.core.forecast.start_estimate import StartEstimate

ANSWER_CPU_SECONDS = 0.75
"""CPU that one answer with an estimate may cost, its reads included: callers do not wait for each other.
Most forecasts end earlier, by their count of looks, so that a slower machine gives the same answer."""
_rank = attrgetter("rank")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenQueue:
    """A pool and the first jobs of its queue, as they were read for one answer."""

    pool: PoolPolicy
    snapshot: Snapshot
    """The snapshot as it was read: past use has not changed the order yet."""
    waiting: tuple[WaitingJob, ...]
    at: datetime
    """The instant of the look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolForecast:
    """The likely starts of one pool."""

    by_job: Mapping[str, "StartEstimate"] = field(default_factory=dict)
    why_none: str | None = None
    """Why the pool has no forecast at all; None if it has one."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Why a job has no estimate, by the names of jobs behind the part of the queue that was looked at."""
    is_cut: bool = False
    """Some jobs have no estimate, or a rough one, for want of time."""
    is_late: bool = False
    """The clock ended the work: another answer may differ."""


NO_FORECAST = PoolForecast()
TOO_LATE = PoolForecast(is_cut=True, is_late=True)


def forecast_of(seen: SeenQueue, context: RequestContext, *, in_time: Callable[[], bool]) -> PoolForecast:
    """Estimate the starts of all jobs of a queue at once, in an order as of the newest fact."""
    from trainmaster.core.forecast import queue_estimate  # noqa: PLC0415  few calls ask
    from trainmaster.core.forecast.start_estimate import MOST_RUNNING, MOST_SHAPES  # noqa: PLC0415

    if queue_estimate.is_too_much(seen.snapshot):
        return PoolForecast(why_none=f"more than {MOST_RUNNING} jobs run in the pool", is_cut=True)
    queue = _queue_of(seen)
    first = queue_estimate.estimable(queue.waiting)
    why = f"jobs of more than {MOST_SHAPES} different shapes go before it"
    notes = {job.name: why for job in queue.waiting[len(first) :]}
    queue = replace(queue, waiting=first)
    run_times = context.outside.reader.run_times(seen.pool.name, queue_estimate.lanes_of_queue(queue))
    answer = queue_estimate.estimate_queue(replace(queue, run_times=run_times), in_time=in_time)
    is_cut = answer.is_cut or bool(notes)
    return PoolForecast(by_job=answer.by_job, notes=notes, is_cut=is_cut, is_late=answer.is_late)


def _queue_of(seen: SeenQueue) -> "WholeQueue":
    """Order the queue by past use as of the newest fact: past use as of now would give each look its own."""
    from trainmaster.core.forecast.estimate_anchor import newest_fact  # noqa: PLC0415  few calls ask
    from trainmaster.core.forecast.queue_estimate import WholeQueue  # noqa: PLC0415

    anchor = newest_fact(seen.snapshot, seen.waiting, now=seen.at)
    shifts = shifts_of(shares_seen(seen.snapshot, seen.pool, now=anchor), seen.pool)
    waiting = (shifted(job, shifts) for job in seen.waiting)
    return WholeQueue(
        snapshot=ranked(seen.snapshot, seen.pool, now=anchor),
        waiting=tuple(sorted(waiting, key=_rank)),
        pool=seen.pool,
        now=seen.at,
    )
