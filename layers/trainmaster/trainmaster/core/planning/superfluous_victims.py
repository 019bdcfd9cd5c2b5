"""Victims that a plan does not need once all of its preemptors are known: what others free is enough."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.actions import Action, Preempt
from trainmaster.core.planning.capacity import minus, take
from trainmaster.core.planning.snapshot import RunningJob


def least_stops(
    actions: Sequence[Action],
    *,
    spare: Mapping[Capacity, int],
    cost: Callable[[RunningJob], float],
    kept: Iterable[str] = (),
) -> list[Action]:
    """Return the actions without victims whose instances others free as well, the dearest dropped first.

    Preemptors choose one after the other. So a small one may stop a small job although a later one has to
    stop a large job that serves both. A preemption that is left without a victim is left out.

    Args:
        actions: The actions of a plan.
        spare: Instances that are free, or come free without another stop, and that no job counts on.
        cost: Function that returns the cost of stopping a job.
        kept: Preemptors that need their own victims, whatever else comes free.
    """
    preemptions = [action for action in actions if isinstance(action, Preempt) and action.goes_on is None]
    bound = set(kept)
    victims = [victim for one in preemptions if one.job.name not in bound for victim in one.victims]
    dropped, left = set[str](), dict(spare)
    for victim in sorted(victims, key=lambda job: (-cost(job), job.name)):
        if all(left.get(capacity, 0) >= count for capacity, count in victim.held):
            take(left, victim.vector)
            dropped.add(victim.name)
    return list(_without(dropped, actions)) if dropped else list(actions)


def _without(dropped: set[str], actions: Iterable[Action]) -> Iterable[Action]:
    for action in actions:
        if not isinstance(action, Preempt) or dropped.isdisjoint(job.name for job in action.victims):
            yield action
        elif needed := tuple(job for job in action.victims if job.name not in dropped):
            freed = (job.vector for job in action.victims if job.name in dropped)
            yield replace(
                action,
                victims=needed,
                short=_positive(minus(action.short, *freed)),
                reclaimed=action.reclaimed - dropped,
            )


def _positive(counts: Vector) -> Vector:
    return {capacity: count for capacity, count in counts.items() if count > 0}
