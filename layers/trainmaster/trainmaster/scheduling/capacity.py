"""How many instances of what are there, and for whom they are free."""

from collections.abc import Iterable

from trainmaster.jobs import Capacity, CapacityType, JobState, Vector
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.snapshot import Hold, RunningJob, total


def pool_vector(pool: PoolPolicy) -> dict[Capacity, int]:
    """Everything the pool may use, on-demand and spot apart."""
    on_demand = {Capacity(name, CapacityType.ON_DEMAND): count for name, count in pool.capacity.items()}
    spot = {Capacity(name, CapacityType.SPOT): count for name, count in pool.spot_capacity.items()}
    return on_demand | spot


def minus(left: Vector, *others: Vector) -> dict[Capacity, int]:
    """``left`` less all others; may go below zero (capacity was lowered, or victims still stop)."""
    taken = total(others)
    return {capacity: left.get(capacity, 0) - taken.get(capacity, 0) for capacity in {*left, *taken}}


def kept_from(job: str, holds: Iterable[Hold]) -> dict[Capacity, int]:
    """What is held for others than ``job``."""
    return total(hold.vector for hold in holds if hold.preemptor != job)


def on_its_way(running: Iterable[RunningJob]) -> dict[Capacity, int]:
    """Instances of attempts that were asked to stop: free within minutes."""
    asked = (JobState.PREEMPTING, JobState.STOPPING)
    return total(job.vector for job in running if job.state in asked)


def lacking(asked: Vector, free: Vector) -> dict[Capacity, int]:
    """How many more are needed, by capacity; empty when ``asked`` fits."""
    short = {capacity: count - free.get(capacity, 0) for capacity, count in asked.items()}
    return {capacity: count for capacity, count in short.items() if count > 0}
