"""Says in a sentence or two what a change of a job would do, before it is confirmed."""

from collections.abc import Iterator
from datetime import datetime

from trainmaster.core.jobs.spans import length

from trainmaster_client.jobs.job_views import JobView


def cancel_consequence(job: JobView, *, now: datetime) -> str:
    if job.is_final:
        return f"It has ended: it is {job.state}. There is nothing to cancel."
    return " ".join(_cancelled(job, now))


def _cancelled(job: JobView, now: datetime) -> Iterator[str]:
    if job.is_waiting:
        yield "It leaves the queue at once and is not requeued."
        if job.attempt:
            yield "What its attempts saved stays where it is."
        return
    live = job.attempts[-1] if job.attempts else None
    since = live.started_at if live else job.started_at
    ran = f" for {length(now - since)}" if since else ""
    yield f"It is {job.state}{ran} on {job.instances}. SageMaker stops it; it is not requeued."
    if live is None or live.last_checkpoint is None:
        yield "No checkpoint of this attempt was seen: all of its work may be lost."
    else:
        at_most = "at most " if live.last_checkpoint_is_lower_bound else ""
        age = length(now - live.last_checkpoint)
        yield f"Its newest checkpoint is {at_most}{age} old; later work is lost."


def priority_consequence(job: JobView) -> str:
    if job.is_final:
        return f"It has ended: it is {job.state}. Its priority no longer matters."
    if job.is_waiting:
        place = "" if job.position is None else f" It is at position {job.position} now."
        return f"It moves in the queue and keeps its age; a higher one may preempt running jobs.{place}"
    return "It keeps running. A higher priority makes it harder to preempt, a lower one easier."


def hold_consequence(job: JobView) -> str:
    if job.state == "held":
        return "It is held. Released, it waits in the queue again, with the age it has by now."
    if job.is_waiting:
        return "It does not start until it is released; it keeps its age."
    return f"It is {job.state}: only a waiting job can be held."
