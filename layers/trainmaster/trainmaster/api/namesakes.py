"""The job that has the name of a submission: the same submission sent again, or somebody else's."""

from dataclasses import replace

from trainmaster.api.request_context import RequestContext
from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import parse_task_name, position_of
from trainmaster.core.arrays.virtual_tasks import virtual_task
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.submission.admission import Submission
from trainmaster.core.submission.repeats import conflict_error, conflict_with


def existing(context: RequestContext, submission: Submission) -> Job | None:
    """Return the job that this submission made before; None if the name is free. Raises JobConflictError."""
    job = namesake(context, submission)
    taken = conflict(context, submission, job)
    if taken is not None:
        raise conflict_error(taken)
    return job


def existing_array(context: RequestContext, submission: Submission) -> Array | None:
    """Return the array that this submission made; None if the name is free. Raises JobConflictError."""
    job = existing(context, submission)
    return None if job is None else context.outside.reader.array(job.name)


def namesake(context: RequestContext, submission: Submission) -> Job | None:
    """Return the job that has the name, or one of whose attempts has it; of an array what stands for it."""
    reader = context.outside.reader
    alias = reader.alias(submission.ask.name)
    if alias is None:
        return _task_of_the_name(context, submission.ask.name)
    job = reader.job(alias.job)
    if job is None and (array := reader.array(alias.job)) is not None:
        return array_as_job(array)
    return job


def array_as_job(array: Array) -> Job:
    """Return an array as a job with its submission, state and end."""
    if array.end is None:
        return array.template
    return replace(array.template, state=JobState(array.end.value), ended_at=array.ended_at)


def _task_of_the_name(context: RequestContext, name: str) -> Job | None:
    task = parse_task_name(name)
    array = None if task is None else context.outside.reader.array(task.array)
    position = None if task is None or array is None else position_of(array, task.index)
    return None if array is None or position is None else virtual_task(array, position)


def conflict(context: RequestContext, submission: Submission, job: Job | None) -> FieldError | None:
    """Return why the submission cannot have its name; None if it is free, or is that of its own job."""
    if job is None:
        return None
    is_seen = context.sees(job.spec.team)
    return conflict_with(job, submission, now=context.outside.clock(), is_seen=is_seen)
