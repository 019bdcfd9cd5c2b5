"""Where a job stands in its pool's queue, for people."""

from trainmaster.jobs import Job
from trainmaster.ports import QueueReader
from trainmaster.views import MAX_POSITION, NOWHERE, Place

SHORT_QUEUE = 50
"""A queue that is read for the answer to a submission; a longer one would make submitting slower."""


def place_in_queue(job: Job, queue: QueueReader) -> Place:
    """Counts those ahead, up to a limit; nothing for a job that does not wait its turn."""
    if not job.is_waiting or job.is_parked:
        return NOWHERE
    heads = queue.waiting(job.spec.pool, after=None, limit=MAX_POSITION)
    return Place.behind(sum(entry.rank < (job.score, job.name) for entry in heads))


def place_if_short(job: Job, queue: QueueReader) -> Place:
    """The same, unless the queue is long: then who wants to know asks for the job."""
    if queue.queue_length(job.spec.pool) > SHORT_QUEUE:
        return Place(waiting=SHORT_QUEUE)
    return place_in_queue(job, queue)
