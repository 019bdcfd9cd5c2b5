"""One job by the name of any of its attempts: found for those who may see it, changed in spite of races."""

import re
from collections.abc import Callable

from trainmaster.api.request_context import Visit
from trainmaster.core.errors import FieldError, JobConflictError, LostRaceError, NotFoundError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change

# Source: SageMaker API reference, TrainingJobName.
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")
_LOST_RACES = 5
"""Tries of a change against events and passes that change the same job; each takes milliseconds."""


def find_job(visit: Visit, name: str) -> Job:
    """Raises NotFoundError, the same for jobs that do not exist and for those of other teams."""
    reader = visit.outside.reader
    alias = reader.alias(name) if _NAME.fullmatch(name) else None
    job = reader.job(alias.job) if alias else None
    if job is None or alias is None or job.spec.entry_id != alias.entry_id or not visit.sees(job.spec.team):
        raise NotFoundError("no job of your teams has this name")
    return job


def change_job(visit: Visit, name: str, step: Callable[[Job], Change | None]) -> Job:
    """Apply the step to the job as it is at the instant of the write.

    Crash safety: one transaction, conditional on the version that the step has seen. Whoever was faster, a
    pass or an event, has won, and the step sees what came of it.

    Args:
        visit: Who asks.
        name: Of the job, or of one of its attempts.
        step: What to do about the job; None: it is as wanted. May refuse by raising.
    """
    for _ in range(_LOST_RACES):
        job = find_job(visit, name)
        change = step(job)
        if change is None:
            return job
        try:
            (changed,) = visit.outside.store.commit([change], at=visit.outside.clock())
        except LostRaceError:
            continue
        return changed
    raise LostRaceError("the job kept changing; try again")


def refuse_final(job: Job) -> None:
    """Raises JobConflictError when the job has ended."""
    if job.is_final:
        error = FieldError(
            field="name", message=f"the job is {job.state}", hint="a job that has ended stays so"
        )
        raise JobConflictError(f"the job is {job.state}", errors=[error])
