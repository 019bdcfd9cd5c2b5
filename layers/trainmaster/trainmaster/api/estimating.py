"""When a waiting job is likely to start: the planner rolled forward over everything ahead of it."""

from collections import Counter

from trainmaster.api.surroundings import Standing
from trainmaster.api.visit import Visit
from trainmaster.jobs import Job
from trainmaster.scheduling.entries import waiting_entry
from trainmaster.scheduling.estimate import MOST_AHEAD, Question, estimate
from trainmaster.shapes import lane_text
from trainmaster.views import MAX_POSITION, View, instant_text


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
