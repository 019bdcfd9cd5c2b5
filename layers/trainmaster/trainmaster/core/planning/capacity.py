"""Capacity of a pool: how many instances there are of each type, for whom they are free, in which shapes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache

from trainmaster.core.jobs.elastic_state import run_time_at
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, Vector, fits, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
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


def longest_run(job: WaitingJob, shape: Shape) -> timedelta:
    """Return the longest that the next attempt may train in a shape: the narrower, the longer.

    What AWS has granted may be less than that of an elastic job.
    """
    if job.widths is None:
        return job.runs_at_most
    return run_time_at(shape.instances, job.runs_at_most, job.widths) or job.runs_at_most


def least_shapes(job: WaitingJob, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return the shapes that a job waits for: an elastic one only for its least width."""
    if job.widths is None or not shapes:
        return tuple(shapes)
    least = min(shape.instances for shape in shapes)
    return tuple(shape for shape in shapes if shape.instances == least)


def allowed(snapshot: Snapshot) -> dict[Capacity, int]:
    """Return what learned account limits leave, of the types that have one.

    A count is below zero where more is in use.
    """
    return {
        capacity: limit.limit - snapshot.used.get(capacity, 0) - snapshot.warm.get(capacity, 0)
        for capacity, limit in snapshot.account_limits.items()
    }


def within_limits(
    free: dict[Capacity, int], whole: Vector, limits: Mapping[Capacity, AccountLimit]
) -> dict[Capacity, int]:
    """Return what the account allows of instances that a pool may give away: it may have more than a limit.

    Args:
        free: What is free by the pool's capacity, so that all that is in use, warm or held is deducted.
        whole: The capacity of the pool.
        limits: Learned limits; those that only one job has met are left out.
    """
    if not limits:  # nearly always: spare the copy
        return free
    allowed = dict(free)
    for capacity, limit in limits.items():
        if limit.is_sure and capacity in allowed:
            allowed[capacity] -= max(whole.get(capacity, 0) - limit.limit, 0)
    return allowed


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


# ---- on training plans


_key_of = lru_cache(maxsize=256)(Capacity.of_plan)


def with_plans(job: WaitingJob, shapes: tuple[Shape, ...], pool: PoolPolicy) -> tuple[Shape, ...]:
    """Return the shapes in which the job may start, those on plans first; a plan's are paid for anyway.

    Args:
        job: A job that waits.
        shapes: Shapes that it may start in but for plans, in its order.
        pool: Its pool, with the plans as they are.
    """
    if not pool.plans and not any(shape.is_on_plan for shape in shapes):
        return shapes
    others = tuple(shape for shape in shapes if not shape.is_on_plan)
    if job.choice is not Choice.FIRST_FIT:
        return shapes
    # One that no plan serves keeps its own shape: that no pool has it is why it waits.
    return (*_on_plans(job, pool).values(), *others) or shapes


def _on_plans(job: WaitingJob, pool: PoolPolicy) -> dict[tuple[Capacity, int, str | None], Shape]:
    """Return the shapes on plans by their content: those of two alternatives may be the same."""
    plans = [plan for entry, plan in pool.known_plans if entry.is_open_to(job.team)]
    placed: dict[tuple[Capacity, int, str | None], Shape] = {}
    for shape in job.shapes:
        if shape.avoids_plans or len(shape.vector) > 1:
            continue
        ((capacity, count),) = shape.vector.items()
        for plan in plans:
            if plan.instance_type == capacity.instance_type and capacity.plan in (None, plan.name):
                key = _key_of(plan.instance_type, plan.name)
                placed.setdefault((key, count, shape.subnet), Shape(vector={key: count}, subnet=shape.subnet))
    return placed


def with_room(shapes: Iterable[Shape], free: Vector) -> Shape | None:
    """Return all shapes that fit now, held together, for SageMaker to pick from; None if none fits."""
    roomy = [shape for shape in shapes if fits(shape.vector, free)]
    vector = {capacity: count for shape in roomy for capacity, count in shape.vector.items()}
    return Shape(vector=vector) if vector else None


def reservable(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return the shapes in which a job's place is kept: on plans only if it runs nowhere else.

    A window closes whatever is reserved in it.
    """
    return tuple(shape for shape in shapes if not shape.is_on_plan) or shapes
