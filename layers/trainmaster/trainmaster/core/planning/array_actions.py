"""Actions of a plan on arrays, beside starts of their tasks: expand them, hold them, note their end."""

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.array_steps import equal_failures, needs_trimming, next_tasks, parent_tasks
from trainmaster.core.jobs.index_sets import first_positions
from trainmaster.core.planning.actions import Action, DropTasks, EndArray, ExpandArray, HoldArray, TrimArray

MOST_DROPPED = 1000
"""Tasks that one action ends."""


def array_actions(arrays: Sequence[Array], *, expands: bool) -> Iterator[Action]:
    """Yield at most one action for each array: each changes the row that the next would be conditional on.

    Args:
        arrays: The arrays of the pool as read, with those that they run after index by index.
        expands: Whether jobs of the pool may start at all; else no array needs more waiting jobs.
    """
    by_name = {array.name: array for array in arrays}
    for array in sorted(arrays, key=lambda array: (array.template.score, array.name)):
        action = _action(array, by_name, expands=expands)
        if action is not None:
            yield action


def _action(array: Array, arrays: Mapping[str, Array], *, expands: bool) -> Action | None:
    if array.ended_at is not None:
        return None
    if array.is_ended:
        return EndArray(array=array)
    if (failure_class := equal_failures(array)) is not None:
        return HoldArray(array=array, failure_class=failure_class)
    ready, orphaned = parent_tasks(array, arrays)
    if orphaned:
        return DropTasks(array=array, positions=first_positions(orphaned, MOST_DROPPED))
    if expands and (chosen := next_tasks(array, ready)):
        return ExpandArray(array=array, positions=chosen)
    return TrimArray(array=array) if needs_trimming(array) else None
