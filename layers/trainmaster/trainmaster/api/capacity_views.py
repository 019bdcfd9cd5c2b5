"""Counts of instances as documents of the API show them: by type, by capacity type, and of elastic jobs."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.policy import PoolPolicy

View = dict[str, Any]
_ALWAYS = (CapacityType.ON_DEMAND, CapacityType.SPOT)
"""Capacity types that every document shows; older clients know no other."""


def by_type(vector: Vector) -> dict[str, int]:
    """Show counts by instance type, of all capacity types together."""
    counts: dict[str, int] = {}
    for capacity in sorted(vector):
        counts[capacity.instance_type] = counts.get(capacity.instance_type, 0) + vector[capacity]
    return counts


def by_capacity_type(vector: Vector, kinds: Iterable[CapacityType] = _ALWAYS) -> dict[str, dict[str, int]]:
    return {
        kind.value: by_type(
            {capacity: count for capacity, count in vector.items() if capacity.capacity_type is kind}
        )
        for kind in kinds
    }


def kinds_of(pool: PoolPolicy) -> tuple[CapacityType, ...]:
    """Return the capacity types of a pool that its documents show."""
    return (*_ALWAYS, CapacityType.PLAN) if pool.plans else _ALWAYS


def used_view(pool: PoolPolicy, used: Vector) -> dict[str, dict[str, int]]:
    return by_capacity_type(used, kinds_of(pool))


def free_view(pool: PoolPolicy, taken: Vector) -> View:
    """Show what is free, never below zero: a lowered capacity may be exceeded by its users."""
    free: View = {
        CapacityType.ON_DEMAND.value: _free(pool.capacity, taken, CapacityType.ON_DEMAND),
        CapacityType.SPOT.value: _free(pool.spot_capacity, taken, CapacityType.SPOT),
    }
    if pool.plans:
        left = {plan: max(count.usable - taken.get(plan, 0), 0) for plan, count in pool.plan_counts.items()}
        free[CapacityType.PLAN.value] = by_type(left)
    return free


def _free(capacity: Mapping[str, int], taken: Vector, kind: CapacityType) -> dict[str, int]:
    return {
        instance_type: max(count - taken.get(Capacity(instance_type, kind), 0), 0)
        for instance_type, count in capacity.items()
    }


def elastic_view(job: Job, planned: str | None) -> View | None:
    """Show the widths of an elastic job; ``wanted`` is that of its next attempt, as far as is decided.

    ``planned`` is what the planner says of the width now; None where it was not asked, or says nothing.
    """
    widths = job.spec.widths
    if widths is None:
        return None
    width = job.live.shape.instances if job.live else None
    wanted = job.elastic.wanted if job.elastic else None
    if wanted is None and not job.is_final:
        wanted = widths.largest
    return {
        "widths": list(widths.counts),
        "width": width,
        "wanted": wanted,
        "why": planned or _why_this_width(job, width, widths),
    }


def _why_this_width(job: Job, width: int | None, widths: Widths) -> str | None:
    if job.is_live and job.changes_width and job.reason is not None:
        return job.reason.message
    if width is None or width == widths.largest:
        return None
    return (
        f"{width} of {widths.largest} instances; it grows once there is room that no waiting job can use, if"
        " the time saved is worth the restart"
    )
