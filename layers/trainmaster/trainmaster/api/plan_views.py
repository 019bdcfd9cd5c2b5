"""Training plans as ``GET /pools`` shows them, and their unused hours as ``GET /usage`` does."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.history.past_records import Position
from trainmaster.core.history.past_records import Window as Period
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.plan_windows import PlanSeen, Window, next_window, paid_time, window_at
from trainmaster.core.policy.training_plans import PlanEntry

BATCH = 1000
MOST_ENDINGS = 50_000
"""Ended attempts of a pool that are read; if there are more, its sums are unknown."""
_HOUR = timedelta(hours=1)


def plan_views(pool: PoolPolicy, used: Vector, *, is_admin: bool, now: datetime) -> list[View]:
    """Show each plan; of one that was never described only its ARN is known.

    Args:
        pool: The pool, with its plans as they are.
        used: Instances in use by capacity.
        is_admin: Whether the caller may see what plans cost.
        now: The instant that windows are compared with.
    """
    return [
        _view(entry, seen, used, now=now) | (_fee(entry, seen) if is_admin else {})
        for entry in pool.plans
        for seen in [pool.seen_plans.get(entry.arn)]
    ]


def _fee(entry: PlanEntry, seen: PlanSeen | None) -> View:
    fee = (seen.fee_usd if seen is not None else None) or entry.fee_usd
    return {"fee_usd": None if fee is None else float(fee)}


def _view(entry: PlanEntry, seen: PlanSeen | None, used: Vector, *, now: datetime) -> View:
    if seen is None:
        return {
            "arn": entry.arn,
            "status": "Unknown",
            "instance_type": None,
            "instances": 0,
            "available": None,
            "used": 0,
            "window": None,
            "next": None,
            "windows": [],
            "trouble": None,
        }
    return {
        "arn": entry.arn,
        "status": seen.status,
        "instance_type": seen.instance_type,
        "instances": max(seen.total - seen.unhealthy - seen.unseen, 0),
        "available": seen.available,
        "used": used.get(seen.capacity_key, 0),
        "window": _window(window_at(seen, now), entry.drain),
        "next": _window(next_window(seen, now), entry.drain),
        "windows": [
            {
                "from": instant_text(window.begin),
                "to": instant_text(window.end),
                "instances": window.instances,
                "status": window.status,
            }
            for window in seen.windows
        ],
        "trouble": seen.trouble,
    }


def _window(window: Window | None, drain: timedelta) -> View | None:
    """Show a window, and from when on nothing may run in it."""
    if window is None:
        return None
    return {
        "from": instant_text(window.begin),
        "to": instant_text(window.end),
        "closes": instant_text(window.closing(drain)),
    }


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
    window = Period(since=since, until=max(min(until, now), since))
    return {"unused_plan": [view for pool in pools for view in _of_pool(context, pool, window)]}


def _of_pool(context: RequestContext, pool: PoolPolicy, window: Period) -> Iterator[View]:
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


def _used(context: RequestContext, pool: PoolPolicy, window: Period) -> dict[Capacity, timedelta] | None:
    """Add up the instance-time of jobs on each plan; None if they are more than one answer reads."""
    plans = [plan for _, plan in pool.known_plans]
    used: Counter[Capacity] = Counter()
    reader = context.outside.reader
    for job in reader.running(pool.name):
        _add(used, job.vector, plans, Period(since=job.claimed_at, until=window.until), window)
    position: Position | None = None
    looked = 0
    while True:
        endings, position = reader.endings(pool.name, window, after=position, limit=BATCH)
        for ending in endings:
            if ending.attempt is not None:
                span = Period(since=ending.attempt.claimed_at, until=ending.ended_at)
                _add(used, ending.attempt.vector, plans, span, window)
        looked += BATCH
        if position is None:
            return {plan: timedelta(seconds=seconds) for plan, seconds in used.items()}
        if looked >= MOST_ENDINGS or not context.has_time:
            return None


def _add(
    used: Counter[Capacity], vector: Vector, plans: list[PlanSeen], span: Period, window: Period
) -> None:
    since, until = max(span.since, window.since), min(span.until, window.until)
    for plan in plans:
        if (count := vector.get(plan.capacity_key)) and since < until:
            inside = paid_time(plan, since=since, until=until, instances=count)
            used[plan.capacity_key] += int(inside.total_seconds())
