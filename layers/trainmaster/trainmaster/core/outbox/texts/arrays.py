"""Notices of arrays: one for each array, however many tasks it has."""

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.steps import end_text
from trainmaster.core.outbox.messages import Notice, NoticeKind


def array_ended_notice(array: Array) -> Notice:
    """Tell how the tasks of an array ended; the array has just ended."""
    spec, counts = array.template.spec, array.counts
    failed = f"`trainmaster results {array.name}` lists all tasks. `rerun` makes an array of the failed ones."
    return Notice(
        kind=NoticeKind.ARRAY_ENDED,
        team=spec.team,
        job=array.name,
        what=f"Array {array.name} has ended: {counts.completed} of {counts.total} tasks completed.",
        why="" if counts.completed == counts.total else f"It is {end_text(array)}.",
        todo=failed if counts.failed else "",
        detail={"state": array.state.value, **_counts(array)},
    )


def array_held_notice(array: Array, failure_class: str) -> Notice:
    """Tell that equal failures have an array held."""
    spec, most = array.template.spec, array.stop_after_failures
    return Notice(
        kind=NoticeKind.ARRAY_HELD,
        team=spec.team,
        job=array.name,
        what=f"Array {array.name} is held: {held_text(array, failure_class)}.",
        why="None of its tasks has completed, so the others would most likely fail in the same way.",
        todo="Fix the cause, cancel the array and submit it again; or release it, if the cause is gone.",
        undo=f"`stop_after_failures` of the array, {most}, says after how many; 0 never holds it.",
        detail={"failure_class": failure_class, **_counts(array)},
    )


def held_text(array: Array, failure_class: str) -> str:
    """Say why an array is held for its failures."""
    return f"the last {array.stop_after_failures} tasks to end failed with {failure_class}"


def _counts(array: Array) -> dict[str, int]:
    counts = array.counts
    return {
        "tasks": counts.total,
        "completed": counts.completed,
        "failed": counts.failed,
        "stopped": counts.stopped,
    }
