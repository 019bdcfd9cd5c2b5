"""Growths at the end of a plan: elastic jobs take room that no waiting job can use, where it pays.

At most one in each plan, the first in order for which it is worth it. A growth gives all instances of the job
back to AWS for minutes, so what it saves has to be ``elastic.min_gain`` beyond its own price, and a job that
changed its width within ``elastic.snooze`` is left alone.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import attrgetter
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
from trainmaster.core.policy.kinds import duration_text


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


def growths(walk: Walked) -> tuple[list[Grow], dict[str, str]]:
    """Return the growth that the plan makes, if any, and by job in words what a growth would need."""
    elastic = sorted((job for job in walk.snapshot.running if job.widths is not None), key=attrgetter("rank"))
    grown: list[Grow] = []
    words: dict[str, str] = {}
    for job in elastic:
        best = None if grown or _bar(job, walk) else _best(job, walk)
        if best is not None and best.saved >= walk.pool.elastic.min_gain:
            walk.capacity.keep(job, dict.fromkeys(job.vector, best.to))
            used = {capacity: walk.capacity.used.get(capacity, 0) for capacity in job.vector}
            grown.append(Grow(job=job, width=best.to, used=used, why=best.text))
            words[job.name] = f"{best.text}: it is asked to stop for that"
        else:
            words[job.name] = _words(job, walk)
    return grown, words


def _words(job: RunningJob, walk: Walked) -> str:
    """Say how wide a job is, what its next width would save, and what is in the way of that."""
    assert job.widths is not None, job
    ((capacity, width),) = job.vector.items()
    wider = [count for count in job.widths.counts if count > width]
    if not wider:
        return f"{width} of {job.widths.largest} instances"
    best = _best(job, walk)
    worth = best or width_worth(job, wider[0], now=walk.now)
    bar = _bar(job, walk)
    if bar is None and best is None:
        bar = f"needs {wider[0] - width} more {capacity} that are free and stay so"
    if bar is None and worth.saved < walk.pool.elastic.min_gain:
        bar = f"that has to be {duration_text(walk.pool.elastic.min_gain)} at least"
    return f"{worth.text}: {bar or 'after the growth of another job'}"


def _best(job: RunningJob, walk: Walked) -> WidthWorth | None:
    return max(_worths(job, walk), key=attrgetter("saved"), default=None)


def _bar(job: RunningJob, walk: Walked) -> str | None:
    """Say what keeps a job from being stopped for more instances, whatever is free; None: nothing does."""
    if job.state is not JobState.RUNNING or job.stop_sent or job.name in walk.capacity.holds:
        return "it is being stopped"
    if job.training_since is None or not job.known_to_sagemaker:
        return "not before it trains"
    if not job.has_checkpoint:
        return "it has no CheckpointConfig"
    if job.resized_at is not None and walk.now - job.resized_at < walk.pool.elastic.snooze:
        until = job.resized_at + walk.pool.elastic.snooze
        return f"not before {until:%H:%M} UTC, as its width changed at {job.resized_at:%H:%M} UTC"
    if not job.vector.keys().isdisjoint(walk.front.wanted):
        return "not while other jobs wait for its instance type"
    return None


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
