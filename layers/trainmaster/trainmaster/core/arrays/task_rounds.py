"""How long the tasks of an array take, from how long one takes and how many run beside each other."""

from datetime import timedelta
from math import ceil

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.index_sets import all_bits
from trainmaster.core.jobs.instances import Vector


def tasks_beside(array: Array, capacity: Vector) -> int:
    """Return how many tasks run at once in an empty pool, as far as the throttle lets; at least 1."""
    fit = max(
        min(capacity.get(kind, 0) // needed for kind, needed in shape.vector.items())
        for shape in array.template.shapes
    )
    return max(1, min(len(array.indices), fit, array.at_most or fit))


def tasks_in_rounds(count: int, beside: int, length: timedelta) -> timedelta:
    """Return how long so many tasks take, of which so many run at once."""
    return ceil(count / beside) * length


def waiting_tasks(array: Array, *, upto: int | None = None) -> int:
    """Count the tasks that wait, as jobs or not.

    Args:
        array: The array.
        upto: Position of a task that is no job yet: those behind it do not count. None: all count.
    """
    left = array.unexpanded if upto is None else array.unexpanded & all_bits(upto + 1)
    return array.jobs.waiting + left.bit_count()
