"""When a waiting job is likely to start: the planner rolled forward over everything ahead of it."""

from collections import Counter

from trainmaster.api.job_context import Standing
from trainmaster.api.request_context import Visit
from trainmaster.api.views import MAX_POSITION, View, instant_text
from trainmaster.core.forecast.start_estimate import MOST_AHEAD, Question, estimate
from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.queue_entries import waiting_entry


def estimated_start(job: Job, standing: Standing, visit: Visit) -> View | None:
    """None where nothing can be said: it does not wait its turn, nothing starts, or it is far behind."""
    look, ahead = standing.look, standing.ahead
    if look is None or job.is_parked or visit.stored.paused or len(ahead) >= MAX_POSITION:
        return None
    unseen = Counter((one.team, lane_text(one.shapes, one.choice)) for one in ahead[MOST_AHEAD:])
    question = Question(
        snapshot=look.snapshot,
        job=waiting_entry(job),
        ahead=ahead[:MOST_AHEAD],
        unseen=unseen,
        pool=look.pool,
        run_times=visit.outside.reader.run_times(job.spec.pool),
        now=look.at,
    )
    found = estimate(question, seed=job.spec.entry_id)
    return None if found is None else {"p50": instant_text(found.p50), "p90": instant_text(found.p90)}
