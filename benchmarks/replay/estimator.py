"""The product's start estimate, asked with what its API would read."""

from datetime import datetime

from trainmaster.core.forecast.queue_estimate import WholeQueue, estimable, estimate_queue
from trainmaster.core.planning.wait_reasons import MAX_POSITION
from trainmaster_client.simulate.engine.pool_state import PoolState


def estimated_start(table: PoolState, name: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The p50 and the p90; None where the product has no estimate."""
    queue = WholeQueue(
        snapshot=table.snapshot(now),
        waiting=estimable(table.lanes.first_in_turn(MAX_POSITION)),
        pool=table.rules,
        run_times=table.lessons.run_times,
        now=now,
    )
    start = estimate_queue(queue).by_job.get(name)
    return None if start is None else (start.p50, start.p90)
