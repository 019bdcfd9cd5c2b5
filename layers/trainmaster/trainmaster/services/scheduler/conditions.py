"""Build the condition of a transaction: the guard of an action, and what changes beside its jobs."""

from dataclasses import replace

from trainmaster.core.planning.apply import Changes
from trainmaster.core.planning.changes import HoldEnded, HoldPlaced, HoldUsed, RoomKept, WarmPoolReused
from trainmaster.core.records import WriteCondition
from trainmaster.services.scheduler.context import PassContext


def condition_of(changes: Changes, context: PassContext) -> WriteCondition:
    """Put together what the table checks and changes; the caller adds the changes of the jobs themselves."""
    guard = changes.guard
    condition = WriteCondition(
        policy_version=context.policy_version,
        most_used=guard.most_used,
        used=guard.used,
        warm=guard.warm,
        most_committed=guard.most_committed,
        throttles=guard.throttles,
    )
    for change in changes.written:
        match change:
            case HoldPlaced(hold=hold, replaces=replaces):
                condition = replace(condition, places_hold=hold, replaces_hold=replaces)
            case RoomKept(hold=hold):
                condition = replace(condition, keeps=(*condition.keeps, hold))
            case HoldUsed(preemptor=preemptor):
                condition = replace(condition, ends_hold_of=preemptor)
            case HoldEnded(hold=hold):
                condition = replace(condition, drops_hold=hold)
            case WarmPoolReused(warm_pool=warm_pool):
                condition = replace(condition, reuses=warm_pool)
            case _:
                pass
    return condition
