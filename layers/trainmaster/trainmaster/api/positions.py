"""Where a job stands in its pool's queue, for people."""

from collections.abc import Sequence

from trainmaster.api.views import MAX_POSITION, NOWHERE, Place
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.ports import QueueReader

SHORT_QUEUE = 50
"""A queue that is read for the answer to a submission; a longer one would make submitting slower."""


def jobs_ahead(job: Job, queue: QueueReader) -> tuple[WaitingJob, ...]:
    """As far as positions are counted, in their turn; nobody is ahead of a job that has no turn."""
    if not _has_a_turn(job):
        return ()
    heads = queue.waiting(job.spec.pool, after=None, limit=MAX_POSITION)
    return tuple(entry for entry in heads if entry.rank < (job.score, job.name))


def place_behind(job: Job, ahead: Sequence[WaitingJob]) -> Place:
    return Place.behind(len(ahead)) if _has_a_turn(job) else NOWHERE


def place_if_short(job: Job, queue: QueueReader) -> Place:
    """The same, unless the queue is long: then who wants to know asks for the job."""
    if queue.queue_length(job.spec.pool) > SHORT_QUEUE:
        return Place(waiting=SHORT_QUEUE)
    return place_behind(job, jobs_ahead(job, queue))


def _has_a_turn(job: Job) -> bool:
    return job.is_waiting and not job.is_parked
