"""Carries out what a plan decides about arrays: expand, hold, trim, note the end.

Each is one transaction on condition that the array is as the plan saw it. A death before or after it leaves
the array as it was or as it is wanted, and the next plan goes on from there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.steps import ended_array
from trainmaster.core.arrays.tasks import ended_task, task_request
from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.index_sets import bits_of
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.outbox import array_ended_notice, array_held_notice, held_text, to_tell
from trainmaster.core.outbox.derive import message_of_parent
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.changes import ArrayChange, ArrayEnded, ArrayHeld, ArrayTrimmed, TasksExpanded
from trainmaster.services.array_jobs import message_to_jobs
from trainmaster.services.scheduler.context import PassContext


def change_array(change: ArrayChange, context: PassContext) -> None:
    """Make one change of an array. Raises LostRaceError if the array has changed since it was read."""
    match change:
        case TasksExpanded():
            _expand(change, context)
        case ArrayHeld(array=array, failure_class=failure_class):
            _hold(array, failure_class, context)
        case ArrayEnded(array=array):
            _end(array, context)
        case ArrayTrimmed(array=array):
            kept = () if array.ends.completed else array.recent[-max(array.stop_after_failures, 1) :]
            context.store.commit_array(array, replace(array, recent=kept))
        case _:
            assert_never(change)


def _expand(change: TasksExpanded, context: PassContext) -> None:
    """Store tasks as jobs; those whose names are in use have failed, and the next plan takes others."""
    array = change.array
    request = context.reader.array_request(array.name)
    positions = change.positions
    bodies = (task_request(request.body, request.values(position), array, position) for position in positions)
    tasks = list(zip(change.jobs, bodies, strict=True))
    taken = context.store.expand(array, tasks, at=context.clock())
    if taken:
        _fail_taken(array, sorted(taken), context)


def _fail_taken(array: Array, positions: Sequence[int], context: PassContext) -> None:
    bits = bits_of(positions)
    ends = replace(array.ends, failed=array.ends.failed | bits, name_taken=array.ends.name_taken | bits)
    code = ReasonCode.NAME_TAKEN.value
    after = replace(
        array,
        unexpanded=array.unexpanded & ~bits,
        ends=ends,
        recent=(*array.recent, *[code] * len(positions)),
    )
    text = f"{ParentEnd.FAILED} ({code})"
    messages = ended_messages(array, positions, ParentEnd.FAILED, text, context)
    context.store.commit_array(array, after, messages=messages)


def ended_messages(
    array: Array, positions: Iterable[int], end: ParentEnd, text: str, context: PassContext
) -> list[OutboxMessage]:
    """Return the messages to jobs that wait for tasks which end without ever being jobs."""
    ended = (ended_task(array, position, end, text) for position in positions if position in array.awaited)
    return [message_of_parent(parent, at=context.clock()) for parent in ended]


def _hold(array: Array, failure_class: str, context: PassContext) -> None:
    at = context.clock()
    held = replace(array, held=True, held_because=held_text(array, failure_class), recent=())
    notice = to_tell(
        array_held_notice(array, failure_class), cause=f"{array.entry_id}#{array.ver:06d}", at=at
    )
    context.store.commit_array(array, held, messages=[notice, message_to_jobs(held, at=at)])


def _end(array: Array, context: PassContext) -> None:
    at = context.clock()
    ended = replace(array, ended_at=at)
    messages = [to_tell(array_ended_notice(ended), cause=array.entry_id, at=at)]
    if array.template.has_dependents:
        messages.append(message_of_parent(ended_array(ended), at=at))
    context.store.commit_array(array, ended, messages=messages)
