"""Where a job stands and why, read and asked anew: for answers about one job."""

from dataclasses import dataclass

from trainmaster.api.positions import jobs_ahead, place_behind
from trainmaster.api.reasons import Look, look_at, reason_now
from trainmaster.api.request_context import Visit
from trainmaster.api.views import Surroundings
from trainmaster.core.jobs.model import Attempt, Job
from trainmaster.core.planning.snapshot import WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was read about one job and its pool."""

    look: Look | None
    """None: it does not wait."""
    ahead: tuple[WaitingJob, ...]


def standing_of(job: Job, visit: Visit) -> Standing:
    pool = visit.policy.pool(job.spec.pool)
    return Standing(
        look=look_at(pool, visit) if job.is_waiting else None, ahead=jobs_ahead(job, visit.outside.reader)
    )


def surroundings_of(
    job: Job, standing: Standing, visit: Visit, *, latest: Attempt | None = None
) -> Surroundings:
    place = place_behind(job, standing.ahead)
    return Surroundings(
        now=visit.outside.clock(),
        pool=visit.policy.pool(job.spec.pool),
        place=place,
        why=reason_now(job, place, standing.look, paused=visit.stored.paused),
        latest=latest,
    )
