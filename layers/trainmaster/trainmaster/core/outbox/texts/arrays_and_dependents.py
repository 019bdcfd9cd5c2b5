"""Notices about many jobs at once: arrays, and jobs that cannot run any more because another one ended."""

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.array_steps import end_text
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.dependents import root_text
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.wording import quoted


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


def dependents_ended_notice(first: Job) -> Notice:
    """Tell a team that its jobs behind a root end; one notice for each root and team.

    Args:
        first: The first of them as it is now: stopped, or held if its owner wanted that.
    """
    assert first.after is not None, first.name
    root, team = first.after.root, first.spec.team
    assert root is not None, first.name
    own = {"root": root.name} if root.team == team else {}
    ending = "held" if first.state is JobState.HELD else "stopped"
    return Notice(
        kind=NoticeKind.DEPENDENTS_ENDED,
        team=team,
        job=first.name,
        what=f"Job {first.name} is {ending}, and so are those behind it: they were to run after a job that "
        "did not end as they need it.",
        why=quoted(root_text(first.after, team=team)),
        todo=f"`trainmaster tree {root.name if root.team == team else first.name}` shows all of them. Queue "
        "them again once the cause is fixed.",
        undo="The tag trainmaster:after-failed=hold has a job held instead until its conditions are changed; "
        "afterany and afternotok are conditions that such an end fulfils.",
        detail={"state": first.state.value, "root_team": root.team, **own},
    )
