"""Preemptions that a plan does not need once all of its preemptors are known: what others free is enough."""

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    """Return the actions without preemptions whose instances others free as well, the most expensive first.

    Preemptors choose one after the other. So a small one may stop a small job although a later one has to
    stop a large job that serves both. A preemption is dropped as a whole or not at all: its job then waits
    without a reservation, and preempts after all if the others come to nothing.

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
    return [action for action in actions if not isinstance(action, Preempt) or action.job.name not in dropped]
