"""The tasks of an array: their names, the jobs and requests made for them."""

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import NOT_YET, EndedParent, ParentEnd, Root
from trainmaster.core.jobs.index_sets import TaskOf
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.request.options import ARRAY

VARIABLES = ("JOB", "INDEX", "COUNT", "MIN", "MAX")
"""Environment variables of a task, behind the prefix."""
VARIABLE_PREFIX = "TRAINMASTER_ARRAY_"

_TASK_NAME = re.compile(r"(?P<stem>.+)-(?P<index>0|[1-9][0-9]{0,4})")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_INDEX_CHARACTERS = 4
ARRAY_ENDING = "Z" * _INDEX_CHARACTERS
"""Last characters of an array's entry id; no index is written so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """A name that a task could have."""

    array: str
    index: int


def task_name(array: str, index: int) -> str:
    return f"{array}-{index}"


def parse_task_name(name: str) -> TaskName | None:
    """Return the array and index that a name stands for; None if no task is ever named so."""
    match = _TASK_NAME.fullmatch(name)
    return None if match is None else TaskName(array=match["stem"], index=int(match["index"]))


def position_of(array: Array, index: int) -> int | None:
    """Return the position of an index in an array; None if it has no such task."""
    position = bisect_left(array.indices, index)
    return position if position < len(array.indices) and array.indices[position] == index else None


def array_entry_id(entry_id: str) -> str:
    """Return the entry id of an array; those of its tasks differ from it in the last characters alone."""
    return entry_id[:-_INDEX_CHARACTERS] + ARRAY_ENDING


def task_entry_id(array_entry: str, index: int) -> str:
    """Return the entry id of a task, which is known before the task exists as a job."""
    digits = "".join(_CROCKFORD[index >> 5 * place & 31] for place in reversed(range(_INDEX_CHARACTERS)))
    return array_entry[:-_INDEX_CHARACTERS] + digits


def task_of(array: Array, position: int) -> TaskOf:
    """Return what the job of a task keeps of its array."""
    return TaskOf(
        name=array.name,
        index=array.indices[position],
        position=position,
        at_most=array.at_most,
        stop_after=array.stop_after_failures,
    )


def task_job(array: Array, position: int) -> Job:
    """Return the job of a task as it enters the queue: with the array's turn, not one of its own."""
    template, index = array.template, array.indices[position]
    folder = template.spec.checkpoint_uri
    spec = replace(
        template.spec,
        name=task_name(array.name, index),
        entry_id=task_entry_id(array.entry_id, index),
        checkpoint_uri=None if folder is None else _task_folder(folder, array, index),
        key_hash=None,
        array=task_of(array, position),
    )
    has_dependents = True if index in array.awaited else None
    return replace(template, spec=spec, ver=0, waiting=None, after=None, has_dependents=has_dependents)


def task_request(
    body: Mapping[str, Any], values: Mapping[str, str], array: Array, position: int
) -> dict[str, Any]:
    """Return the request of a task.

    Args:
        body: The request of the array.
        values: Hyperparameters of this task that differ from the request's.
        array: The array.
        position: Which of its tasks.
    """
    index = array.indices[position]
    numbering = array.numbering
    facts = (array.name, index, numbering.count, numbering.lowest, numbering.highest)
    variables = {f"{VARIABLE_PREFIX}{name}": str(fact) for name, fact in zip(VARIABLES, facts, strict=True)}
    request = {
        **without_array_tag(body),
        "TrainingJobName": task_name(array.name, index),
        "Environment": {**body.get("Environment", {}), **variables},
    }
    if values:
        request["HyperParameters"] = {**body.get("HyperParameters", {}), **values}
    if "CheckpointConfig" in body:
        folder = _task_folder(body["CheckpointConfig"]["S3Uri"], array, index)
        request["CheckpointConfig"] = {**body["CheckpointConfig"], "S3Uri": folder}
    return request


def without_array_tag(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request without the tag that makes it an array."""
    if "Tags" not in body:
        return dict(body)
    kept = [tag for tag in body["Tags"] if tag["Key"] != ARRAY]
    rest = {key: value for key, value in body.items() if key != "Tags"}
    return {**rest, "Tags": kept} if kept else rest


def _task_folder(uri: str, array: Array, index: int) -> str:
    folder = f"/{array.folder}" if array.folder else ""
    return f"{uri.rstrip('/')}/{index}{folder}"


def ended_task(array: Array, position: int, end: ParentEnd, text: str) -> EndedParent:
    """Describe a task that ended without ever being a job, to the jobs that wait for it.

    Args:
        array: The array.
        position: Which of its tasks.
        end: How it ended.
        text: The same in words, with the reason.
    """
    index = array.indices[position]
    entry_id, team = task_entry_id(array.entry_id, index), array.template.spec.team
    root = Root(name=task_name(array.name, index), entry_id=entry_id, team=team, message=text)
    return EndedParent(entry_id=entry_id, end=end, root=root)


def virtual_task(array: Array, position: int) -> Job:
    """Return a task as a job that nobody stored: it waits with its array, or ended without ever being one.

    Args:
        array: The array.
        position: Which of its tasks: one that is not stored as a job.
    """
    task, template = task_job(array, position), array.template
    if array.ends.name_taken >> position & 1:
        reason = Reason(code=ReasonCode.NAME_TAKEN, message="another job had the name of this task")
        return replace(task, state=JobState.FAILED, reason=reason)
    if array.ends.orphaned >> position & 1:
        message = "the task that it was to run after did not complete"
        reason = Reason(code=ReasonCode.DEPENDENCY, message=message)
        return replace(task, state=JobState.STOPPED, reason=reason)
    if array.ends.stopped >> position & 1:
        stopped = Reason(code=ReasonCode.STOPPED_BY_USER, message=f"stopped by {array.stopped_by}")
        reason = template.reason if array.ended_for_parent and template.reason else stopped
        return replace(task, state=JobState.STOPPED, reason=reason)
    if array.held:
        text = f"array {array.name} is held" + (f": {array.held_because}" if array.held_because else "")
        return replace(task, state=JobState.HELD, waiting=Reason(code=ReasonCode.HELD, message=text))
    if template.waits_for_others:
        return replace(
            task, state=template.state, after=template.after, waiting=template.waiting, not_before=NOT_YET
        )
    message = f"waits for its turn in array {array.name}"
    return replace(task, waiting=Reason(code=ReasonCode.AHEAD, message=message))


def array_as_job(array: Array) -> Job:
    """Return an array as a job with its submission, state and end."""
    if array.end is None:
        return array.template
    return replace(array.template, state=JobState(array.end.value), ended_at=array.ended_at)
