"""Where a job stands in its pool's queue, for people."""

from trainmaster.jobs import Job
from trainmaster.ports import QueueReader
from trainmaster.views import MAX_POSITION, NOWHERE, Place


def place_in_queue(job: Job, queue: QueueReader) -> Place:
    """Counts those ahead, up to a limit; nothing for a job that does not wait its turn."""
    if not job.is_waiting or job.is_parked:
        return NOWHERE
    heads = queue.waiting(job.spec.pool, after=None, limit=MAX_POSITION)
    return Place.behind(sum(entry.rank < (job.score, job.name) for entry in heads))
