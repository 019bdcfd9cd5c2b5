"""GET and DELETE /jobs/{name}: one job, by the name of any of its attempts."""

from http import HTTPStatus

from trainmaster.api.estimating import estimated_start
from trainmaster.api.history import story_view
from trainmaster.api.job_context import standing_of, surroundings_of
from trainmaster.api.one_job import change_job, find_job, refuse_final
from trainmaster.api.request_context import Answer, Visit, flags
from trainmaster.api.ringing import ring
from trainmaster.api.views import Surroundings, job_view
from trainmaster.core.jobs.model import Job, JobState, Reason
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change


def show_job(visit: Visit, name: str) -> Answer:
    """``estimate=false`` spares up to two seconds of CPU, for those who ask again and again.

    ``request=true`` adds the CreateTrainingJob request as it was submitted, which is one more read.
    """
    asked = flags(visit.call, estimate=True, request=False)
    job = find_job(visit, name)
    attempts, history = visit.outside.reader.story(job)
    standing = standing_of(job, visit)
    around = surroundings_of(job, standing, visit, latest=attempts[-1] if attempts else None)
    estimate = estimated_start(job, standing, visit) if asked["estimate"] else None
    request = {"request": visit.outside.reader.request(job.name)} if asked["request"] else {}
    body = job_view(job, around) | story_view(attempts, history, estimate) | request
    return Answer(status=HTTPStatus.OK, body=body)


def cancel_job(visit: Visit, name: str) -> Answer:
    """A job that waits is stopped at once, a live one as soon as SageMaker has stopped its attempt."""
    visit.call.parameters()
    job = change_job(visit, name, lambda job: _stop(visit, job))
    ring(visit.outside.doorbell, [job.spec.pool])
    around = Surroundings(now=visit.outside.clock(), pool=visit.policy.pool(job.spec.pool))
    return Answer(status=HTTPStatus.ACCEPTED, body=job_view(job, around))


def _stop(visit: Visit, job: Job) -> Change | None:
    """Raises JobConflictError when the job has ended; None when it is being stopped already."""
    refuse_final(job)
    if job.state is JobState.STOPPING:
        return None
    reason = Reason(code="stopped-by-user", message=f"stopped by {visit.caller.arn}")
    return Change(before=job, after=steps.cancelled(job, reason=reason, now=visit.outside.clock()))
