"""Training plans of a pool, as ``GET /pools`` shows them."""

from datetime import datetime, timedelta

from trainmaster.api.views import View, instant_text
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.plan_windows import PlanSeen, Window, next_window, window_at
from trainmaster.core.policy.training_plans import PlanEntry


def plan_views(pool: PoolPolicy, used: Vector, *, now: datetime) -> list[View]:
    """Show each plan; of one that was never described only its ARN is known.

    Args:
        pool: The pool, with its plans as they are.
        used: Instances in use by capacity.
        now: The instant that windows are compared with.
    """
    return [_view(entry, pool.seen_plans.get(entry.arn), used, now=now) for entry in pool.plans]


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
