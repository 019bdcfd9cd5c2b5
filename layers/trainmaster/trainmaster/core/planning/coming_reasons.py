"""Reason of a job that waits for instances which are on their way: stopped jobs, leaving warm pools."""

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.capacity import minus
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.warm_pools import is_leaving


def why_soon(capacity: FreeCapacity, vector: Vector, *, team: str) -> Reason:
    """Return the reason of a job that waits for what is on its way; ask before that is taken for it."""
    pools = capacity.snapshot.warm_pools
    leaving = (warm_pool.vector for warm_pool in pools if is_leaving(warm_pool, now=capacity.now))
    stopping = minus(capacity.soon.counts, capacity.free.counts, capacity.unsettled, *leaving)
    return wait_reasons.coming(
        vector,
        capacity.free.of(team),
        stop=any(stopping.get(kind, 0) > 0 for kind in vector),
        taken_over=any(capacity.unsettled.get(kind, 0) > 0 for kind in vector),
    )
