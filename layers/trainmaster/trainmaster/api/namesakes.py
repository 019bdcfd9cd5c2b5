"""The job that has the name of a submission: the same submission sent again, or somebody else's."""

from trainmaster.api.request_context import RequestContext
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.model import Job
from trainmaster.core.submission.admission import Submission
from trainmaster.core.submission.repeats import conflict_error, conflict_with


def existing(context: RequestContext, submission: Submission) -> Job | None:
    """Return the job that this submission made before; None if the name is free. Raises JobConflictError."""
    job = namesake(context, submission)
    taken = conflict(context, submission, job)
    if taken is not None:
        raise conflict_error(taken)
    return job


def namesake(context: RequestContext, submission: Submission) -> Job | None:
    """Return the job that has the name, or one of whose attempts has it."""
    reader = context.outside.reader
    alias = reader.alias(submission.ask.name)
    return reader.job(alias.job) if alias else None


def conflict(context: RequestContext, submission: Submission, job: Job | None) -> FieldError | None:
    """Return why the submission cannot have its name; None if it is free, or is that of its own job."""
    if job is None:
        return None
    is_seen = context.sees(job.spec.team)
    return conflict_with(job, submission, now=context.outside.clock(), is_seen=is_seen)
