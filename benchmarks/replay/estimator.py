"""The product's start estimate, asked with what its API would read."""

from collections import Counter
from datetime import datetime

from trainmaster.core.forecast.start_estimate import MOST_AHEAD, Question, estimate
from trainmaster.core.jobs.instances import lane_text
from trainmaster_client.simulate.engine.pool_state import PoolState


def estimated_start(table: PoolState, name: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the p50 and the p90 of a job's start; None if the product has no estimate."""
    *before, job = table.lanes.ahead_of(name)
    lanes = Counter(
        (waiting.team, lane_text(waiting.shapes, waiting.choice)) for waiting in before[MOST_AHEAD:]
    )
    question = Question(
        snapshot=table.snapshot(now),
        job=job,
        ahead=tuple(before[:MOST_AHEAD]),
        unseen=lanes,
        pool=table.rules,
        run_times=table.run_times,
        now=now,
    )
    estimated = estimate(question, seed=name)
    return None if estimated is None else (estimated.p50, estimated.p90)
