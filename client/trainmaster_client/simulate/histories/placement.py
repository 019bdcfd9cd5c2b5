"""Places jobs of which only the GPUs are known: on instances with the fewest GPUs left over."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.memory.accelerators import gpus as gpus_of
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The instances that a job asks for."""

    pool: str
    instance_type: str
    instances: int
    capacity_type: CapacityType
    left_over: int
    """GPUs of its instances that it does not need."""
    refusal: str | None = None
    """Reason why the policy never admits it; None if it fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    pool: str
    capacity: Capacity
    there: int
    gpus: int
    """GPUs of one instance."""


def place(gpus: int, policy: Policy) -> Placement | None:
    """Choose instances with the fewest GPUs left over, then the fewest instances, then the first type.

    Types that have enough instances for it go before those that have not, on-demand before spot.

    Returns:
        None: no pool of the policy has instances with GPUs.
    """
    return min((_placed(gpus, offer) for offer in _offers(policy)), key=_cost, default=None)


def _cost(placement: Placement) -> tuple[bool, bool, int, int]:
    is_spot = placement.capacity_type is CapacityType.SPOT
    return (placement.refusal is not None, is_spot, placement.left_over, placement.instances)


def _placed(gpus: int, offer: _Offer) -> Placement:
    instances = math.ceil(gpus / offer.gpus)
    demand = f"asks for {gpus} GPUs, {instances} instances of {offer.capacity.instance_type}"
    refusal = f"{demand}; pool {offer.pool} has {offer.there} ({offer.capacity.capacity_type})"
    return Placement(
        pool=offer.pool,
        instance_type=offer.capacity.instance_type,
        instances=instances,
        capacity_type=offer.capacity.capacity_type,
        left_over=instances * offer.gpus - gpus,
        refusal=refusal if instances > offer.there else None,
    )


def _offers(policy: Policy) -> Iterator[_Offer]:
    """Types with GPUs, in the policy's order."""
    for pool in policy.pools:
        for capacity, there in pool_vector(pool).items():
            if there and (gpus := gpus_of(capacity.instance_type)):
                yield _Offer(pool=pool.name, capacity=capacity, there=there, gpus=gpus)
