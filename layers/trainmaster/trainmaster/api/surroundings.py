"""Where a job stands and why, read and asked anew: for answers about one job."""

from trainmaster.api.places import place_in_queue
from trainmaster.api.reasons import NOTHING, decided_now, reason_now
from trainmaster.api.visit import Visit
from trainmaster.jobs import Attempt, Job
from trainmaster.views import Surroundings


def surroundings_of(job: Job, visit: Visit, *, latest: Attempt | None = None) -> Surroundings:
    pool = visit.policy.pool(job.spec.pool)
    place = place_in_queue(job, visit.outside.reader)
    decided = decided_now(pool, visit) if job.is_waiting else NOTHING
    return Surroundings(
        now=visit.outside.clock(),
        pool=pool,
        place=place,
        why=reason_now(job, place, decided, paused=visit.stored.paused),
        latest=latest,
    )
