"""Other shapes with the same accelerators: as many of the same kind and memory, in types that pools have."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.request.options import Alternative

MOST = 6
"""Each is tried on the API, which may think for seconds."""

_ROOMS = {CapacityType.ON_DEMAND: "capacity", CapacityType.SPOT: "spot_capacity"}


def proposals(like: Alternative, pools: Iterable[Mapping[str, Any]]) -> list[Alternative]:
    """Those that the empty pool could hold, fewer hosts first; ``pools`` as of ``GET /pools``."""
    found = (one for pool in pools for one in _in_pool(like, pool))
    return sorted(found, key=lambda one: (one.count, one.capacity))[:MOST]


def _in_pool(like: Alternative, pool: Mapping[str, Any]) -> Iterator[Alternative]:
    for capacity_type, key in _ROOMS.items():
        for instance_type, room in (pool.get(key) or {}).items():
            count = _as_many(like, instance_type)
            if count is not None and count <= room:
                capacity = Capacity(instance_type, capacity_type)
                yield Alternative(capacity=capacity, count=count, subnet=None)


def _as_many(like: Alternative, instance_type: str) -> int | None:
    """Instances with just the accelerators of ``like``; without accelerators only its own type will do."""
    if instance_type == like.capacity.instance_type:
        return like.count
    own, other = BY_TYPE.get(like.capacity.instance_type), BY_TYPE.get(instance_type)
    if own is None or other is None or (own.kind, own.memory_mib) != (other.kind, other.memory_mib):
        return None
    count, rest = divmod(own.count * like.count, other.count)
    return count if count and not rest else None
