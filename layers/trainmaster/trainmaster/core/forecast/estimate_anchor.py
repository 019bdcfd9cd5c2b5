"""The instant and the seed of an estimate: both follow from the pool's state, so looks in between agree."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b

from trainmaster.core.forecast.run_times import start_of_month
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob

SHORTEST_RUNG = timedelta(minutes=5)
"""Estimates whose instants have passed stay as they were computed for at least this long."""
RUNG_GROWTH = 0.25
"""Later they stay for this part of the time since the pool last changed."""


def newest_fact(snapshot: Snapshot, waiting: Iterable[WaitingJob], *, now: datetime) -> datetime:
    """Return when the pool is known to have changed last, at most ``now``.

    Submissions, claims, begins of Training, ends, warm pools and the begin of a month, which renews budgets,
    are dated. What is not (a new priority, a new policy) changes the seed alone.
    """
    return min(max(start_of_month(now), *_dated(snapshot, waiting)), now)


def _dated(snapshot: Snapshot, waiting: Iterable[WaitingJob]) -> Iterator[datetime]:
    yield from snapshot.last_end.values()
    yield from (job.submitted_at for job in (*snapshot.waiting, *waiting))
    yield from (warm.since for warm in snapshot.warm_pools)
    for job in snapshot.running:
        yield job.claimed_at
        if job.training_since is not None:
            yield job.training_since


def seed_of(snapshot: Snapshot, waiting: Sequence[WaitingJob]) -> str:
    """Digest what decides about starts: who waits in which order, who runs, what is held and refused.

    What a pass rewrites while nothing happens is left out: versions of rows, reasons, leases, checkpoints.
    """
    state = [
        snapshot.policy_version,
        [[job.name, job.state, job.rank] for job in waiting],
        sorted(_running(job) for job in snapshot.running),
        sorted([str(capacity), count] for capacity, count in snapshot.used.items()),
        sorted([warm.training_job_name, warm.releasing] for warm in snapshot.warm_pools),
        sorted(hold.preemptor for hold in snapshot.holds),
        sorted([str(capacity), limit.limit] for capacity, limit in snapshot.account_limits.items()),
    ]
    return blake2b(json.dumps(state).encode(), digest_size=12).hexdigest()


def _running(job: RunningJob) -> list[str]:
    return [job.name, job.state, job.training_job_name, str(job.training_since)]


def later_anchor(anchor: datetime, passed: datetime, *, now: datetime) -> datetime:
    """Return the instant to estimate from once an estimated start has passed and nothing has started.

    It lies ahead of ``now``, so that no start lies behind it, and stays the same for a while: the rungs begin
    at the start that was missed and become longer with the time for which nothing has changed.

    Args:
        anchor: The newest fact, from which the start that was missed was estimated.
        passed: The estimated start that has passed, later than the anchor.
        now: The instant of the look.
    """
    age = passed - anchor
    while anchor + age <= now:
        age += max(SHORTEST_RUNG, RUNG_GROWTH * age)
    return anchor + age
