"""GET and DELETE /jobs/{name} of a task that does not exist as a job yet, or never did."""

from http import HTTPStatus

from trainmaster.api.array_changes import cancel_tasks, change_array
from trainmaster.api.parent_jobs import parent_views, states_of
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.story_views import story_view
from trainmaster.api.views import JobContext, View, job_view
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.tasks import parse_task_name, position_of, task_name, task_request, virtual_task
from trainmaster.core.errors import FieldError, JobConflictError

NamedTask = tuple[Array, int]
"""An array, and the position of one of its tasks."""


def find_virtual_task(context: RequestContext, name: str) -> NamedTask | None:
    """Find a task that is no job; None if no array has such a task, or a job has its name."""
    reader, task = context.outside.reader, parse_task_name(name)
    if task is None or reader.alias(name) is not None:
        return None
    array = reader.array(task.array)
    if array is None or not context.sees(array.template.spec.team):
        return None
    position = position_of(array, task.index)
    return None if position is None else (array, position)


def show_task(context: RequestContext, task: NamedTask, *, with_request: bool) -> Answer:
    """Show the task as the job that it will be: all of it follows from the array's row."""
    array, position = task
    view = _view(context, task) | story_view(virtual_task(array, position), (), ()) | {"dependents": []}
    if with_request:
        request = context.outside.reader.array_request(array.name)
        view["request"] = task_request(request.body, request.values(position), array, position)
    return Answer(status=HTTPStatus.OK, body=view)


def _view(context: RequestContext, task: NamedTask) -> View:
    array, position = task
    job = virtual_task(array, position)
    around = JobContext(
        now=context.outside.clock(),
        pool=context.policy.pool(job.spec.pool),
        why=job.waiting,
        parents=parent_views(job, context, states_of(context, [job])),
    )
    is_awaited = array.indices[position] in array.awaited
    count = context.outside.reader.dependents_count(job.spec.entry_id) if is_awaited else 0
    return job_view(job, around) | {"dependents_count": count}


def cancel_task(context: RequestContext, task: NamedTask) -> Answer:
    """Cancel the task before it ever becomes a job. Raises JobConflictError if it has ended."""
    array, position = task
    if not array.unexpanded >> position & 1:
        state = virtual_task(array, position).state
        error = FieldError(field="name", message=f"the task is {state}", hint="what has ended stays so")
        raise JobConflictError(f"the task is {state}", errors=[error])
    changed = change_array(
        context, array.name, lambda array: cancel_tasks(context, array, 1 << position, whole=False)
    )
    return Answer(status=HTTPStatus.ACCEPTED, body=_view(context, (changed, position)))


def refuse_virtual(context: RequestContext, name: str) -> None:
    """Raise JobConflictError for a task that is no job yet: only its array can be changed."""
    task = find_virtual_task(context, name)
    if task is None:
        return
    array, position = task
    known = task_name(array.name, array.indices[position])
    message = f"{known} is a task that is no job yet"
    hint = f"change its array: PATCH /arrays/{array.name}"
    raise JobConflictError(message, errors=[FieldError(field="name", message=message, hint=hint)])
