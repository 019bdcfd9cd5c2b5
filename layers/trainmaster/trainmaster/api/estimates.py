"""GET /estimates: when the waiting jobs are likely to start, from one simulation for each pool."""

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from trainmaster.api.job_context import shifts_in, snapshot_of
from trainmaster.api.known_names import pools_asked
from trainmaster.api.pool_forecasts import (
    ANSWER_CPU_SECONDS,
    NO_FORECAST,
    TOO_LATE,
    PoolForecast,
    SeenQueue,
    forecast_of,
)
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.planning.wait_reasons import MAX_POSITION
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.unmanaged.decisions import rules_for

if TYPE_CHECKING:
    from trainmaster.core.forecast.start_estimate import StartEstimate


def show_estimates(context: RequestContext) -> Answer:
    """Estimate pool by pool; the pools share the CPU time that one answer may take."""
    given = context.call.parameters("pool")
    pools = pools_asked(context, given.get("pool"))
    estimates, is_cut = list[View](), False
    for left, pool in zip(range(len(pools), 0, -1), pools, strict=True):
        shifts = shifts_in(pool, context)
        waiting = context.outside.reader.waiting(pool.name, after=None, limit=MAX_POSITION + 1, shifts=shifts)
        queued = waiting[:MAX_POSITION]
        forecast = _forecast(context, pool, queued, in_time=_in_time(context, left))
        if forecast.is_late and len(pools) > 1:
            forecast = TOO_LATE  # asked for alone, the pool has more time and another answer
        is_cut = is_cut or len(waiting) > len(queued) or forecast.is_cut
        estimates += _views(context, pool.name, queued, forecast.by_job)
    return Answer(status=HTTPStatus.OK, body={"estimates": estimates, "truncated": is_cut})


def _in_time(context: RequestContext, pools_left: int) -> Callable[[], bool]:
    """Return a deadline for one of so many pools."""
    outside = context.outside
    spent = outside.cpu_seconds()
    share = (context.began_at_cpu + ANSWER_CPU_SECONDS - spent) / pools_left

    def in_time() -> bool:
        return outside.cpu_seconds() < spent + share and context.has_time

    return in_time


def _forecast(
    context: RequestContext, pool: PoolPolicy, waiting: tuple[WaitingJob, ...], *, in_time: Callable[[], bool]
) -> PoolForecast:
    """Paused, no job has an estimate, and nothing is left out."""
    if not waiting or context.stored.paused:
        return NO_FORECAST
    if not in_time():
        return TOO_LATE
    now = context.outside.clock()
    snapshot = snapshot_of(pool, context, now=now)
    seen = SeenQueue(pool=rules_for(pool, snapshot), snapshot=snapshot, waiting=waiting, at=now)
    return forecast_of(seen, context, in_time=in_time)


def _views(
    context: RequestContext,
    pool: str,
    waiting: tuple[WaitingJob, ...],
    by_job: Mapping[str, "StartEstimate"],
) -> Iterator[View]:
    """Yield a line for each job; jobs of other teams have no names."""
    for position, job in enumerate(waiting, start=1):
        estimate = by_job.get(job.name)
        yield {
            "name": job.name if context.sees(job.team) else None,
            "team": job.team,
            "pool": pool,
            "position": position,
            "p50": instant_text(estimate.p50) if estimate else None,
            "p90": instant_text(estimate.p90) if estimate else None,
        }
