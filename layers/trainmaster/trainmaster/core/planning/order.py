"""The one total order of a pool: which job goes first, and which is stopped last."""

from datetime import datetime, timedelta

from trainmaster.core.jobs.model import Job, JobSpec, epoch_ms
from trainmaster.core.jobs.run_time import likely_left, likely_length
from trainmaster.core.policy import PoolPolicy, is_by_length

MOST_BEHIND = timedelta(days=7)
"""Most time that ``shortest_first`` puts a job back for its length, however long it is. A job that comes
later than that never passes it, so none waits for ever."""
HALF_BEHIND = timedelta(hours=1)
"""Length of a job that goes half as much later: about in the middle of the lengths that jobs have."""


def score_of(spec: JobSpec, priority: int, pool: PoolPolicy) -> int:
    """Return the turn of a new job, lower is earlier: the time of entry, less the value of its priority.

    It never changes while the job waits, so ageing rewrites nothing: a job outranks another of d points
    less for d x per/add of age.
    """
    return _score(spec, priority, pool, likely_length(spec), since=spec.submitted_at)


def score_again(job: Job, priority: int, pool: PoolPolicy) -> int:
    """Return the same for a job that may have trained, or waited for others.

    Only what is left of it counts, from the instant on at which its conditions held.
    """
    since = job.queued_since or job.spec.submitted_at
    return _score(job.spec, priority, pool, likely_left(job), since=since)


def score_after(before: Job, after: Job) -> int:
    """Return the score of a job that is requeued, with what is left of it now."""
    if not is_by_length(before.ranked_by):
        return after.score
    return after.score - behind_ms(_left(before)) + behind_ms(_left(after))


def _score(spec: JobSpec, priority: int, pool: PoolPolicy, left: timedelta | None, *, since: datetime) -> int:
    score = epoch_ms(since) - pool.boost_ms(priority)
    if pool.order.shortest_first:
        score += behind_ms(spec.max_runtime if left is None else min(left, spec.max_runtime))
    return score


def _left(job: Job) -> timedelta:
    left = likely_left(job)
    return job.spec.max_runtime if left is None else min(left, job.spec.max_runtime)


def behind_ms(left: timedelta) -> int:
    """Return how much later a job of this length goes: each hour more counts less than the one before."""
    # The fraction rises from 0 towards 1 and never reaches it, so MOST_BEHIND bounds how far a long job falls
    # back.
    return int(MOST_BEHIND * (left / (left + HALF_BEHIND)) / timedelta(milliseconds=1))
