"""Stops that a plan does not need once all of its preemptors are known: what others free is enough."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.actions import Action, Preempt
from trainmaster.core.planning.capacity import take
from trainmaster.core.planning.snapshot import RunningJob


def least_stops(
    actions: Sequence[Action],
    *,
    spare: Mapping[Capacity, int],
    cost: Callable[[RunningJob], float],
    kept: Iterable[str] = (),
) -> list[Action]:
    """Return the actions without stops whose instances others free as well, the most expensive first.

    Preemptors choose one after the other. So a small one may stop a small job although a later one has to
    stop a large job that serves both. First whole preemptions are dropped: their jobs then wait without a
    reservation, and preempt after all if the others come to nothing. Then single victims of those that are
    left: their preemptor keeps its reservation, and gets a part of it from the victims of the others.

    Args:
        actions: The actions of a plan.
        spare: Instances that are free, or come free without another stop, and that no job counts on.
        cost: Function that returns the cost of stopping a job.
        kept: Preemptors that need their own victims, whatever else comes free.
    """
    bound, left, dropped = set(kept), dict(spare), set[str]()
    preemptions = [
        action
        for action in actions
        if isinstance(action, Preempt) and action.goes_on is None and action.job.name not in bound
    ]
    costs = {action.job.name: sum(map(cost, action.victims)) for action in preemptions}
    for action in sorted(preemptions, key=lambda action: (-costs[action.job.name], action.job.name)):
        freed = action.freed
        if all(left.get(capacity, 0) >= count for capacity, count in freed.items()):
            take(left, freed)
            dropped.add(action.job.name)
    least = _without_single_victims(
        [action for action in preemptions if action.job.name not in dropped], spare=left, cost=cost
    )
    return [
        least.get(action.job.name, action) if isinstance(action, Preempt) else action
        for action in actions
        if not isinstance(action, Preempt) or action.job.name not in dropped
    ]


def _without_single_victims(
    preemptions: Iterable[Preempt],
    *,
    spare: dict[Capacity, int],
    cost: Callable[[RunningJob], float],
) -> dict[str, Preempt]:
    """Return the preemptions by preemptor, without the victims that ``spare`` replaces, which is used up."""
    by_preemptor = {action.job.name: action for action in preemptions}
    victims = [(victim, name) for name, action in by_preemptor.items() for victim in action.victims]
    for victim, name in sorted(victims, key=lambda pair: (-cost(pair[0]), pair[0].name)):
        if all(spare.get(capacity, 0) >= count for capacity, count in victim.vector.items()):
            take(spare, victim.vector)
            by_preemptor[name] = _spares(by_preemptor[name], victim)
    return by_preemptor


def _spares(action: Preempt, victim: RunningJob) -> Preempt:
    """Return the preemption without one of its victims.

    What that would have freed stays missing in the reservation. So if the others come to nothing, a later
    pass asks further jobs, and else it finds what they leave over.
    """
    return replace(
        action,
        victims=tuple(job for job in action.victims if job.name != victim.name),
        reclaimed=action.reclaimed - {victim.name},
    )
