"""The shapes in which a job may run on training plans, beside those of its request."""

from functools import lru_cache

from trainmaster.core.jobs.instances import Capacity, Choice, Shape
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import PoolPolicy

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


def reservable(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return the shapes in which a job's place is kept: on plans only if it runs nowhere else.

    A window closes whatever is reserved in it.
    """
    return tuple(shape for shape in shapes if not shape.is_on_plan) or shapes
