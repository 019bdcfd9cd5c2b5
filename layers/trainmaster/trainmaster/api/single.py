"""GET and DELETE /jobs/{name}: one job, by the name of any of its attempts."""

import re
from http import HTTPStatus

from trainmaster import lifecycle
from trainmaster.api.places import place_in_queue
from trainmaster.api.reasons import reasons_now
from trainmaster.api.ringing import ring
from trainmaster.api.visit import Answer, Visit
from trainmaster.errors import FieldError, JobConflictError, LostRaceError, NotFoundError
from trainmaster.jobs import Job, JobState, Reason
from trainmaster.ports import Change
from trainmaster.views import Surroundings, job_view, story_view

# Source: SageMaker API reference, TrainingJobName.
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")
_LOST_RACES = 5
"""Tries of a cancel against events and passes that change the same job; each takes milliseconds."""


def show_job(visit: Visit, name: str) -> Answer:
    visit.call.parameters()
    job = _find(visit, name)
    attempts, history = visit.outside.reader.story(job)
    pool = visit.policy.pool(job.spec.pool)
    around = Surroundings(
        now=visit.outside.clock(),
        pool=pool,
        place=place_in_queue(job, visit.outside.reader),
        why=reasons_now(pool, visit).get(job.name) if job.is_waiting else None,
        latest=attempts[-1] if attempts else None,
    )
    return Answer(status=HTTPStatus.OK, body=job_view(job, around) | story_view(attempts, history))


def cancel_job(visit: Visit, name: str) -> Answer:
    """A job that waits is stopped at once, a live one as soon as SageMaker has stopped its attempt."""
    visit.call.parameters()
    for _ in range(_LOST_RACES):
        job = _find(visit, name)
        if job.state is JobState.STOPPING:
            return _accepted(visit, job)
        if job.is_final:
            raise _final(job)
        try:
            return _accepted(visit, _stop(visit, job))
        except LostRaceError:
            continue
    raise LostRaceError("the job kept changing; try again")


def _find(visit: Visit, name: str) -> Job:
    """Raises NotFoundError, the same for jobs that do not exist and for those of other teams."""
    reader = visit.outside.reader
    alias = reader.alias(name) if _NAME.fullmatch(name) else None
    job = reader.job(alias.job) if alias else None
    if job is None or alias is None or job.spec.entry_id != alias.entry_id or not visit.sees(job.spec.team):
        raise NotFoundError("no job of your teams has this name")
    return job


def _stop(visit: Visit, job: Job) -> Job:
    now = visit.outside.clock()
    reason = Reason(code="stopped-by-user", message=f"stopped by {visit.caller.arn}")
    after = lifecycle.cancelled(job, reason=reason, now=now)
    (stopped,) = visit.outside.store.commit([Change(before=job, after=after)], at=now)
    return stopped


def _accepted(visit: Visit, job: Job) -> Answer:
    ring(visit.outside.doorbell, [job.spec.pool])
    around = Surroundings(now=visit.outside.clock(), pool=visit.policy.pool(job.spec.pool))
    return Answer(status=HTTPStatus.ACCEPTED, body=job_view(job, around))


def _final(job: Job) -> JobConflictError:
    error = FieldError(field="name", message=f"the job is {job.state}", hint="a job that has ended stays so")
    return JobConflictError(f"the job is {job.state}", errors=[error])
