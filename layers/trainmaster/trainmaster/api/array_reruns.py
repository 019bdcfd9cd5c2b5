"""POST /arrays/{name}/rerun: some tasks of an array once more, as an array of their own."""

from dataclasses import replace

from trainmaster.api.add_array import submit_array
from trainmaster.api.array_changes import chosen_bits, unknown_field, wrong
from trainmaster.api.arrays import find_array
from trainmaster.api.asked_arrays import array_submission
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.submissions import made_by
from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.wanted import WantedArray, request_mistakes
from trainmaster.core.errors import JobConflictError, invalid
from trainmaster.core.jobs.index_sets import positions
from trainmaster.core.request.strict_json import JsonObject, parse_object

_RERUN_FIELDS = ("tasks", "name", "fresh")
_AGAIN = "again"


def rerun_array(context: RequestContext, name: str) -> Answer:
    """Submit an array of some tasks of another: the same indices, values and checkpoints, so they resume."""
    context.call.parameters()
    call = context.call
    body = parse_object(call.body, base64=call.is_base64, content_type=call.content_type)
    array = find_array(context, name)
    chosen = _rerun_tasks(array, body)
    request = context.outside.reader.array_request(array.name)
    number, base = _next_number(context, array)
    new_name = body.get("name") or f"{base}-{_AGAIN}{number}"
    wanted = WantedArray(
        indices=tuple(array.indices_at(chosen)),
        values=tuple(request.values(position) for position in positions(chosen)),
        at_most=array.at_most,
        stop_after_failures=array.stop_after_failures,
    )
    fresh = {**request.body, "TrainingJobName": new_name}
    mistakes = request_mistakes(fresh, wanted)
    if mistakes:
        raise invalid([replace(mistake, field="name") for mistake in mistakes])
    submission = made_by(context, fresh)
    folder = f"{_AGAIN}{number}" if body.get("fresh") else array.folder
    return submit_array(context, array_submission(submission, wanted, rerun_of=array.name, folder=folder))


def _rerun_tasks(array: Array, body: JsonObject) -> int:
    errors = [unknown_field(key, _RERUN_FIELDS) for key in body if key not in _RERUN_FIELDS]
    tasks, name, fresh = body.get("tasks", "failed"), body.get("name"), body.get("fresh", False)
    if not isinstance(tasks, str):
        errors.append(wrong("tasks", "is no text", 'send "failed" or indices, e.g. "3-7"'))
    if name is not None and (not isinstance(name, str) or not name):
        errors.append(wrong("name", "is no name", "leave it out for a name that is made of the array's"))
    if not isinstance(fresh, bool):
        errors.append(wrong("fresh", "is neither true nor false", "true trains from the start"))
    if errors or not isinstance(tasks, str):
        raise invalid(errors)
    if tasks != "failed":
        return chosen_bits(array, tasks, field="tasks")
    if not array.ends.failed:
        message = f"no task of {array.name} has failed"
        raise JobConflictError(message, errors=[wrong("tasks", message, 'name tasks, e.g. {"tasks": "3-7"}')])
    return array.ends.failed


def _next_number(context: RequestContext, array: Array) -> tuple[int, str]:
    """Return the first number whose name is free, and the name before it, which all reruns share."""
    base, stem, digits = array.name, *array.name.rpartition(f"-{_AGAIN}")[::2]
    if array.rerun_of is not None and stem and digits.isdigit():
        base = stem
    number = 1
    while context.outside.reader.alias(f"{base}-{_AGAIN}{number}") is not None:
        number += 1
    return number, base
