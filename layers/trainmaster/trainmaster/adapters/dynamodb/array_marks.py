"""Mark arrays that jobs wait for, or for tasks of which they wait that are no jobs yet."""

from collections import defaultdict
from collections.abc import Iterable

from trainmaster.adapters.dynamodb.array_layout import AWAITED, ENDED_AT, ENTRY_ID, HAS_DEPENDENTS, array_key
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.adapters.dynamodb.writes import Operation, Writes
from trainmaster.core.arrays.tasks import parse_task_name
from trainmaster.core.jobs.end_conditions import Condition


def marked_arrays(conditions: Iterable[Condition], writes: Writes) -> list[Operation]:
    """Return one operation for each array among the parents, or that a parent is a task of.

    The array must not have ended. For a task it must be as it was read: else the task may be a job by now, or
    have ended, and the mark would be found by nobody.
    """
    updates: Updates = defaultdict(Update)
    for condition in conditions:
        if condition.array is None:
            continue
        update = updates[array_key(condition.array)]
        if condition.job == condition.array:
            update.put[HAS_DEPENDENTS] = True
            update.conditions.append(("#n = :v", ENTRY_ID, condition.entry_id))
            update.conditions.append(("attribute_not_exists(#n)", ENDED_AT, None))
            continue
        task = parse_task_name(condition.job)
        assert task is not None, condition
        assert condition.array_ver is not None, condition
        if "ver" not in update.put:
            update.put["ver"] = condition.array_ver + 1
            update.conditions.append(("#n = :v", "ver", condition.array_ver))
        update.append.setdefault(AWAITED, []).append(task.index)
    return writes.updates(updates)
