"""The one total order of a pool: who goes first, and who is stopped last."""

from datetime import timedelta

from trainmaster.core.jobs.model import JobSpec, epoch_ms
from trainmaster.core.policy import PoolPolicy

SIZE_WEIGHT = 1000
"""With ``shortest_first``: a job that trains an hour longer goes as if it had come so many hours later."""


def score_of(spec: JobSpec, priority: int, pool: PoolPolicy) -> int:
    """Turn in the queue, lower is earlier: the time of entry, less what the priority is worth.

    It never changes while the job waits, so ageing rewrites nothing: a job outranks another of d points
    less for d x per/add of age.
    """
    score = epoch_ms(spec.submitted_at) - pool.boost_ms(priority)
    if pool.order.shortest_first:
        length = min(spec.predicted or spec.max_runtime, spec.max_runtime)
        score += SIZE_WEIGHT * (length // timedelta(milliseconds=1))
    return score
