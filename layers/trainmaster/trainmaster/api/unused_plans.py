"""Hours of training plans that were paid for and in which nothing ran: ``unused_plan`` of ``GET /usage``."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View
from trainmaster.core.history.past_records import Position, Window
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.plan_windows import PlanSeen, paid_time

BATCH = 1000
MOST_ENDINGS = 50_000
"""Ended attempts of a pool that are read; if there are more, its sums are unknown."""
_HOUR = timedelta(hours=1)


def unused_plans(context: RequestContext, *, since: datetime, until: datetime) -> View:
    """Show, to admins alone, what was paid for plans in a time and not used; empty if no pool has plans.

    Args:
        context: The call.
        since: The first instant.
        until: The instant after the last; what is to come does not count.
    """
    pools = [pool for pool in context.policy.pools if pool.known_plans]
    if not context.is_admin or not pools:
        return {}
    now = context.outside.clock()
    window = Window(since=since, until=max(min(until, now), since))
    return {"unused_plan": [view for pool in pools for view in _of_pool(context, pool, window)]}


def _of_pool(context: RequestContext, pool: PoolPolicy, window: Window) -> Iterator[View]:
    used = _used(context, pool, window)
    prices = context.policy.price_table
    for entry, plan in pool.known_plans:
        paid = paid_time(plan, since=window.since, until=window.until)
        if not paid:
            continue
        rate = prices.vector_usd_per_hour({plan.capacity_key: 1})
        unused = None if used is None else max(paid - used.get(plan.capacity_key, timedelta()), timedelta())
        yield {
            "pool": pool.name,
            "arn": entry.arn,
            "paid_hours": round(paid / _HOUR, 2),
            "instance_hours": None if unused is None else round(unused / _HOUR, 2),
            "usd": None if unused is None or rate is None else _usd(rate, unused),
        }


def _usd(rate: Decimal, unused: timedelta) -> float:
    return round(float(rate) * (unused / _HOUR), 2)


def _used(context: RequestContext, pool: PoolPolicy, window: Window) -> dict[Capacity, timedelta] | None:
    """Add up the instance-time of jobs on each plan; None if they are more than one answer reads."""
    plans = [plan for _, plan in pool.known_plans]
    used: Counter[Capacity] = Counter()
    reader = context.outside.reader
    for job in reader.running(pool.name):
        _add(used, job.vector, plans, Window(since=job.claimed_at, until=window.until), window)
    position: Position | None = None
    looked = 0
    while True:
        endings, position = reader.endings(pool.name, window, after=position, limit=BATCH)
        for ending in endings:
            if ending.attempt is not None:
                span = Window(since=ending.attempt.claimed_at, until=ending.ended_at)
                _add(used, ending.attempt.vector, plans, span, window)
        looked += BATCH
        if position is None:
            return {plan: timedelta(seconds=seconds) for plan, seconds in used.items()}
        if looked >= MOST_ENDINGS or not context.has_time:
            return None


def _add(
    used: Counter[Capacity], vector: Vector, plans: list[PlanSeen], span: Window, window: Window
) -> None:
    since, until = max(span.since, window.since), min(span.until, window.until)
    for plan in plans:
        if (count := vector.get(plan.capacity_key)) and since < until:
            inside = paid_time(plan, since=since, until=until, instances=count)
            used[plan.capacity_key] += int(inside.total_seconds())
