"""GET and DELETE /jobs/{name}: one job, by the name of any of its attempts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from types import MappingProxyType

from trainmaster.api.job_context import NO_PROSPECT, Standing, job_context_of, standing_of
from trainmaster.api.parent_ends import ParentEnds
from trainmaster.api.parent_jobs import parent_views, states_of, waits_for_parents
from trainmaster.api.request_context import Answer, RequestContext, flags, wake
from trainmaster.api.story_views import story_view
from trainmaster.api.task_routes import cancel_task, find_virtual_task, show_task
from trainmaster.api.views import JobContext, View, job_view
from trainmaster.core.errors import FieldError, JobConflictError, NotFoundError
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.end_conditions import Dependent
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.services import job_steps

MOST_DEPENDENTS = 100
"""Names of dependents in the view of one job."""
NO_ENDS: Mapping[str, datetime] = MappingProxyType({})


# Source: SageMaker API reference, TrainingJobName.
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")


def find_job(context: RequestContext, name: str) -> Job:
    """Find a job. Raises NotFoundError, the same for unknown jobs and for jobs of other teams."""
    reader = context.outside.reader
    alias = reader.alias(name) if _NAME.fullmatch(name) else None
    job = reader.job(alias.job) if alias else None
    if job is None or alias is None or job.spec.entry_id != alias.entry_id or not context.sees(job.spec.team):
        raise _no_job(context, name, is_array=alias is not None and job is None)
    return job


def _no_job(context: RequestContext, name: str, *, is_array: bool) -> NotFoundError:
    """Say that there is no such job; if an array has the name, which route it has."""
    message = "no job of your teams has this name"
    array = context.outside.reader.array(name) if is_array else None
    if array is None or not context.sees(array.template.spec.team):
        return NotFoundError(message)
    hint = f"it is an array: use /arrays/{name}"
    error = FieldError(field="name", message=f"{name} is an array, not a job", hint=hint)
    return NotFoundError(f"{message}; {hint}", errors=[error])


def change_job(context: RequestContext, name: str, step: Callable[[Job], Change | None]) -> Job:
    """Change a job; return it after the step, or as it is if the step changes nothing.

    Args:
        context: The caller's context.
        name: Name of the job, or of one of its attempts.
        step: As for ``job_steps.change_job``.
    """
    read, outside = partial(find_job, context, name), context.outside
    change = job_steps.change_job(read(), step, read=read, store=outside.store, clock=outside.clock)
    return read() if change is None else change.after


def refuse_final(job: Job) -> None:
    """Raise JobConflictError if the job has ended."""
    if job.is_final:
        error = FieldError(
            field="name", message=f"the job is {job.state}", hint="a job that has ended stays so"
        )
        raise JobConflictError(f"the job is {job.state}", errors=[error])


def show_job(context: RequestContext, name: str) -> Answer:
    """Show one job. ``estimate=false`` saves up to two seconds of CPU, for callers that poll.

    ``request=true`` adds the CreateTrainingJob request as it was submitted, which is one more read.
    """
    wanted = flags(context.call, estimate=True, request=False)
    if (task := find_virtual_task(context, name)) is not None:
        return show_task(context, task, with_request=wanted["request"])
    job = find_job(context, name)
    attempts, history = context.outside.reader.story(job)
    standing = standing_of(job, context, estimate=wanted["estimate"])
    ends = ParentEnds(context=context)
    estimate = ends.prospect(job, standing) if wanted["estimate"] else NO_PROSPECT
    latest = attempts[-1] if attempts else None
    view = full_view(job, standing, context, latest=latest, ends=ends.likely_ends())
    request = {"request": context.outside.reader.request(job.name)} if wanted["request"] else {}
    body = view | story_view(job, attempts, history, estimate) | _dependents_view(job, context) | request
    return Answer(status=HTTPStatus.OK, body=body)


def full_view(
    job: Job,
    standing: Standing,
    context: RequestContext,
    *,
    latest: Attempt | None = None,
    ends: Mapping[str, datetime] = NO_ENDS,
) -> View:
    """A JobView with the states of the job's parents.

    Args:
        job: Of a team that the caller may see.
        standing: Of the job.
        context: Who asks.
        latest: As for ``JobContext``.
        ends: When parents are likely to end, by entry id.
    """
    states = states_of(context, [job])
    around = job_context_of(job, standing, context, latest=latest)
    why = around.why or waits_for_parents(job, states, ends)
    return job_view(job, replace(around, why=why, parents=parent_views(job, context, states)))


def dependents_count(job: Job, context: RequestContext) -> View:
    """How many jobs wait for this one, or did; nothing is read for the many that none ever waited for."""
    reader = context.outside.reader
    return {"dependents_count": reader.dependents_count(job.spec.entry_id) if job.has_dependents else 0}


def _dependents_view(job: Job, context: RequestContext) -> View:
    """The first by name, of teams that the caller may see; all are counted."""
    children: tuple[Dependent, ...] = ()
    if job.has_dependents:
        children = context.outside.reader.dependents(job.spec.entry_id, after="", limit=MOST_DEPENDENTS)
    names = [child.name for child in children if context.sees(child.team)]
    return {"dependents": names, **dependents_count(job, context)}


def cancel_job(context: RequestContext, name: str) -> Answer:
    """Cancel a job: a waiting one at once, a live one as soon as SageMaker has stopped its attempt."""
    context.call.parameters()
    if (task := find_virtual_task(context, name)) is not None:
        return cancel_task(context, task)
    job = change_job(context, name, lambda job: _stop(context, job))
    wake(context.outside.wake_ups, [job.spec.pool])
    around = JobContext(
        now=context.outside.clock(),
        pool=context.policy.pool(job.spec.pool),
        parents=parent_views(job, context, states_of(context, [job])),
    )
    return Answer(status=HTTPStatus.ACCEPTED, body=job_view(job, around) | dependents_count(job, context))


def _stop(context: RequestContext, job: Job) -> Change | None:
    """Stop the job; None if it is being stopped already. Raises JobConflictError if it has ended."""
    refuse_final(job)
    if job.state is JobState.STOPPING:
        return None
    reason = Reason(code=ReasonCode.STOPPED_BY_USER, message=f"stopped by {context.caller.arn}")
    return Change(before=job, after=steps.cancelled(job, reason=reason, now=context.outside.clock()))
