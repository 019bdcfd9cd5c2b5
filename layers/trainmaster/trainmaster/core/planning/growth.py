"""Growths at the end of a plan: elastic jobs take room that no waiting job can use, where it pays.

At most one in each plan, the first in order for which it is worth it. A growth gives all instances of the job
back to AWS for minutes, so what it saves has to be ``elastic.min_gain`` beyond its own price, and a job that
changed its width within ``elastic.snooze`` is left alone.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.planning.actions import Grow
from trainmaster.core.planning.capacity_ahead import CapacityAhead
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.queue_front import QueueFront
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import RunningJob, Snapshot
from trainmaster.core.planning.width_worth import WidthWorth, width_worth
from trainmaster.core.policy import PoolPolicy


class Walked(Protocol):
    """The queue as a plan has walked it, with what it left free."""

    snapshot: Snapshot
    pool: PoolPolicy
    now: datetime
    capacity: FreeCapacity
    quotas: Quotas
    ahead: CapacityAhead
    front: QueueFront
    started: set[str]


def growths(walk: Walked) -> list[Grow]:
    """Return the growth that the plan makes, if any."""
    elastic = [job for job in walk.snapshot.running if job.widths is not None and _may_grow(job, walk)]
    for job in sorted(elastic, key=lambda job: job.rank):
        best = max(_worths(job, walk), key=lambda worth: worth.saved, default=None)
        if best is not None and best.saved >= walk.pool.elastic.min_gain:
            walk.capacity.keep(job, dict.fromkeys(job.vector, best.to))
            used = {capacity: walk.capacity.used.get(capacity, 0) for capacity in job.vector}
            return [Grow(job=job, width=best.to, used=used, why=best.text)]
    return []


def _may_grow(job: RunningJob, walk: Walked) -> bool:
    """Tell whether a job could be stopped for more instances, whatever is free."""
    is_awake = job.resized_at is None or walk.now - job.resized_at >= walk.pool.elastic.snooze
    trains = job.state is JobState.RUNNING and job.training_since is not None
    return (
        is_awake
        and trains
        and job.known_to_sagemaker
        and not job.stop_sent
        and job.has_checkpoint
        and job.name not in walk.capacity.holds
        and job.vector.keys().isdisjoint(walk.front.wanted)
    )


def _worths(job: RunningJob, walk: Walked) -> Iterator[WidthWorth]:
    """Yield what each wider width is worth that there is room for until the job would end."""
    assert job.widths is not None, job
    ((capacity, width),) = job.vector.items()
    room = _room(job, capacity, walk)
    for count in job.widths.counts:
        if width < count <= width + room:
            worth = width_worth(job, count, now=walk.now)
            in_use = {capacity: walk.capacity.used.get(capacity, 0) + count - width}
            until = walk.now + max(worth.ends_in, timedelta()) + END_SLACK
            if not walk.ahead.takes_back(job.team, in_use, until=until):
                yield worth


def _room(job: RunningJob, capacity: Capacity, walk: Walked) -> int:
    """Return how many more instances the job may have, by what is free and by the limits on its team."""
    free = walk.capacity.free.of(job.team).get(capacity, 0)
    room = min(free, walk.capacity.allowed.get(capacity, free))
    return min(room, walk.quotas.room(job, capacity, most=room))
