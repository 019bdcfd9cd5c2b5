"""What a plan does with arrays beside starting their tasks: expand them, hold them, note their end."""

from collections.abc import Iterable, Iterator

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.steps import equal_failures, needs_trimming, next_tasks
from trainmaster.core.planning.actions import Action, EndArray, ExpandArray, HoldArray, TrimArray


def array_actions(arrays: Iterable[Array], *, expands: bool) -> Iterator[Action]:
    """Yield at most one action for each array: each changes the row that the next would be conditional on.

    Args:
        arrays: The arrays of the pool as read.
        expands: Whether jobs of the pool may start at all; else no array needs more waiting jobs.
    """
    for array in sorted(arrays, key=lambda array: (array.template.score, array.name)):
        action = _action(array, expands=expands)
        if action is not None:
            yield action


def _action(array: Array, *, expands: bool) -> Action | None:
    if array.ended_at is not None:
        return None
    if array.is_ended:
        return EndArray(array=array)
    if (failure_class := equal_failures(array)) is not None:
        return HoldArray(array=array, failure_class=failure_class)
    if expands and (chosen := next_tasks(array)):
        return ExpandArray(array=array, positions=chosen)
    return TrimArray(array=array) if needs_trimming(array) else None
