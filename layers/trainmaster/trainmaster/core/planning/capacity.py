"""Capacity of a pool: how many instances there are of each type, and for whom they are free."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot
from trainmaster.core.policy import PoolPolicy

ASKED_TO_STOP = frozenset({JobState.PREEMPTING, JobState.STOPPING})


_known = lru_cache(maxsize=1024)(Capacity)
"""Build a capacity, the very same text each time, as that remembers its hash."""


def pool_vector(pool: PoolPolicy) -> dict[Capacity, int]:
    """Return everything that the pool may use now, on-demand, spot and each training plan apart."""
    vector = {_known(name, CapacityType.ON_DEMAND): count for name, count in pool.capacity.items()}
    for name, count in pool.spot_capacity.items():
        vector[_known(name, CapacityType.SPOT)] = count
    for plan, instances in pool.plan_counts.items():
        vector[plan] = instances.usable
    return vector


def free_now(
    snapshot: Snapshot, capacity: Vector, holds: Iterable[PreemptionReservation]
) -> dict[Capacity, int]:
    """Return what is neither used nor warm nor held.

    A count is below zero if capacity was lowered, or victims still stop.
    """
    held = (hold.vector for hold in holds)
    return minus(capacity, snapshot.used, snapshot.warm, counted_on(snapshot.running), *held)


def counted_on(running: Iterable[RunningJob]) -> dict[Capacity, int]:
    """Return warm pools that live attempts were claimed with, until SageMaker reports what became of them.

    Another job may have landed in such a pool, or none: then it is there beside the attempt, and no further
    start may use its instances.
    """
    return total([job.vector for job in running if job.reuses is not None])


def allowed(snapshot: Snapshot) -> dict[Capacity, int]:
    """Return what learned account limits leave, of the types that have one.

    A count is below zero where more is in use.
    """
    return {
        capacity: limit.limit - snapshot.used.get(capacity, 0) - snapshot.warm.get(capacity, 0)
        for capacity, limit in snapshot.account_limits.items()
    }


def minus(left: Vector, *others: Vector) -> dict[Capacity, int]:
    """Return ``left`` less all others; it may go below zero."""
    rest = dict(left)
    for other in others:
        for capacity, count in other.items():
            rest[capacity] = rest.get(capacity, 0) - count
    return rest


def take(rest: dict[Capacity, int], vector: Vector, *, times: int = 1) -> None:
    """Subtract in place; ``times=-1`` gives back."""
    for capacity, count in vector.items():
        rest[capacity] = rest.get(capacity, 0) - times * count


def asked_to_stop(running: Iterable[RunningJob]) -> list[RunningJob]:
    return [job for job in running if job.state in ASKED_TO_STOP]


def on_its_way(running: Iterable[RunningJob]) -> dict[Capacity, int]:
    """Return the instances of attempts that were asked to stop: free within minutes."""
    return total([job.vector for job in asked_to_stop(running)])


def lacking(needed: Vector, free: Mapping[Capacity, int]) -> dict[Capacity, int]:
    """Return how many more are needed, by capacity; empty when ``needed`` fits."""
    short = {capacity: count - free.get(capacity, 0) for capacity, count in needed.items()}
    return {capacity: count for capacity, count in short.items() if count > 0}
