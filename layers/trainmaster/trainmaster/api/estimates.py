"""GET /estimates: when the waiting jobs are likely to start, from one simulation for each pool."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from trainmaster.api.job_context import ANSWER_CPU_SECONDS, shifts_in, snapshot_of
from trainmaster.api.known_names import pools_asked
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.planning.fair_share import ranked
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.planning.wait_reasons import MAX_POSITION
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.unmanaged.decisions import rules_for

if TYPE_CHECKING:
    from trainmaster.core.forecast.start_estimate import StartEstimate

_SEED = "queue"


def show_estimates(context: RequestContext) -> Answer:
    """Estimate pool by pool; the pools share the CPU time that one answer may take."""
    given = context.call.parameters("pool")
    pools = pools_asked(context, given.get("pool"))
    estimates, is_cut = list[View](), False
    for left, pool in zip(range(len(pools), 0, -1), pools, strict=True):
        shifts = shifts_in(pool, context)
        waiting = context.outside.reader.waiting(pool.name, after=None, limit=MAX_POSITION + 1, shifts=shifts)
        queued = waiting[:MAX_POSITION]
        by_job, is_whole = _estimated(context, pool, queued, in_time=_in_time(context, left))
        is_cut = is_cut or len(waiting) > len(queued) or not is_whole
        estimates += _views(context, pool.name, queued, by_job)
    return Answer(status=HTTPStatus.OK, body={"estimates": estimates, "truncated": is_cut})


def _in_time(context: RequestContext, pools_left: int) -> Callable[[], bool]:
    """Give one of the remaining pools an equal part of the CPU time that is left."""
    outside = context.outside
    spent = outside.cpu_seconds()
    share = (context.began_at_cpu + ANSWER_CPU_SECONDS - spent) / pools_left

    def in_time() -> bool:
        return outside.cpu_seconds() < spent + share and context.has_time

    return in_time


def _estimated(
    context: RequestContext, pool: PoolPolicy, waiting: tuple[WaitingJob, ...], *, in_time: Callable[[], bool]
) -> tuple[Mapping[str, "StartEstimate"], bool]:
    """Return estimates by job; False if time did not suffice for all. Paused, no job has an estimate."""
    if not waiting or context.stored.paused:
        return {}, True
    if not in_time():
        return {}, False
    from trainmaster.core.forecast import queue_estimate  # noqa: PLC0415  few calls ask

    now = context.outside.clock()
    snapshot = snapshot_of(pool, context, now=now)
    rules = rules_for(pool, snapshot)
    snapshot = ranked(snapshot, rules, now=now)
    queue = queue_estimate.WholeQueue(snapshot=snapshot, waiting=waiting, pool=rules, now=now)
    if queue_estimate.is_too_much(queue):
        return {}, False
    run_times = context.outside.reader.run_times(pool.name, queue_estimate.lanes_of_queue(queue))
    estimates = queue_estimate.estimate_queue(
        replace(queue, run_times=run_times), seed=_SEED, in_time=in_time
    )
    return estimates.by_job, not estimates.is_cut


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
