"""Says in a sentence or two what a change of a job would do, before it is confirmed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.spans import length

from trainmaster_client.jobs.job_views import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    title: str
    consequence: str
    is_vain: bool
    """Whether the change cannot be made: the consequence says why."""


def question(change: str, job: JobView, *, now: datetime) -> Question:
    """Ask about a change: ``cancel``, ``priority``, ``hold`` or ``release``. Raises KeyError for others."""
    title, consequence, is_vain = _QUESTIONS[change]
    return Question(title=title(job), consequence=" ".join(consequence(job, now)), is_vain=is_vain(job))


def _cancelled(job: JobView, now: datetime) -> Iterator[str]:
    if job.is_final:
        yield f"It has ended: it is {job.state}. There is nothing to cancel."
        return
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


def _reordered(job: JobView, _: datetime) -> Iterator[str]:
    if job.is_final:
        yield f"It has ended: it is {job.state}. Its priority no longer matters."
    elif job.is_waiting:
        yield "It moves in the queue and keeps its age; a higher one may preempt running jobs."
        if job.position is not None:
            yield f"It is at position {job.position} now."
    else:
        yield "It keeps running. A higher priority makes it harder to preempt, a lower one easier."


def _held(job: JobView, _: datetime) -> Iterator[str]:
    if job.is_waiting:
        yield "It does not start until it is released; it keeps its age."
    else:
        yield f"It is {job.state}: only a waiting job can be held."


def _released(_: JobView, __: datetime) -> Iterator[str]:
    yield "It is held. Released, it waits in the queue again, with the age it has by now."


_QUESTIONS: Mapping[
    str,
    tuple[Callable[[JobView], str], Callable[[JobView, datetime], Iterator[str]], Callable[[JobView], bool]],
] = {
    "cancel": (lambda job: f"Cancel {job.name}?", _cancelled, lambda job: job.is_final),
    "priority": (
        lambda job: f"Priority of {job.name}, now {job.priority}",
        _reordered,
        lambda job: job.is_final,
    ),
    "hold": (lambda job: f"Hold {job.name}?", _held, lambda job: not job.is_waiting),
    "release": (lambda job: f"Release {job.name}?", _released, lambda job: job.state != "held"),
}
CHANGES = tuple(_QUESTIONS)
