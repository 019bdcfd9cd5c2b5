"""Counts of instances as documents of the API show them: by type, and by capacity type."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
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
