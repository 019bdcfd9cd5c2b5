"""Limits of a growth: the state of the elastic job, AWS, and above all the jobs that wait.

Free instances may be of no use to any waiting job. That is certain where each of them needs instances that
the elastic job has: nothing that comes free elsewhere lets it start before the elastic job ends, and a growth
that pays makes that earlier. It also has to keep the promise: the reservation of the first waiting job is
not to become later if the grown job uses all of its run time.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.run_time import END_SLACK, LEAST_RUNTIME
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.capacity_ahead import CapacityAhead
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.queue_front import QueueFront
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob, known_as
from trainmaster.core.planning.start_records import RECENT
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


def bar(job: RunningJob, walk: Walked) -> str | None:
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
    return _beyond_account(job) or _waits(job, walk) or _scarce(job, walk)


def _beyond_account(job: RunningJob) -> str | None:
    """Say that a limit of the account leaves the job no wider width; None: none is known to."""
    most, width = job.account_width, sum(job.vector.values())
    if most is None or job.widths is None or any(width < count <= most for count in job.widths.counts):
        return None
    return f"a limit of the account allows {most} instances, by AWS's last refusal"


def keeps_promises(job: RunningJob, to: int, walk: Walked) -> bool:
    """Tell whether a growth to so many instances delays no reservation, however long the job then runs."""
    (capacity,) = job.vector
    reservations = walk.front.on(capacity)
    if not reservations:
        return True
    until = _frees_by(job, to, walk)
    return until is not None and all(
        reservation.admits({capacity: to}, ends_by=until, instead_of=[job]) for reservation in reservations
    )


def _waits(job: RunningJob, walk: Walked) -> str | None:
    """Say which waiting job could start sooner with what is free, or stop this one; None: none could."""
    (capacity,) = job.vector
    if capacity not in walk.front.wanted:
        return None
    if capacity in walk.front.held:
        return "not while room is made for another job"
    most = pool_vector(replace(walk.pool, capacity=walk.pool.most_capacity)).get(capacity, 0)
    beside = 0 if capacity.is_plan else most - job.vector[capacity]
    for other in _still_waiting(walk):
        least = _least(other, capacity)
        if least is None:
            continue
        # A restart would begin the time anew for which a job is protected from those that outrank it.
        if capacity.is_plan or least <= beside or _outranks(other, job, walk):
            return f"not while {known_as(other, to=job.team)} waits, which could use what is free"
    return None


def _still_waiting(walk: Walked) -> Iterable[WaitingJob]:
    return (job for job in walk.snapshot.waiting if job.name not in walk.started)


def _least(job: WaitingJob, capacity: Capacity) -> int | None:
    """Return the fewest instances of a type that the job can start with; None: it never uses the type."""
    return min((shape.vector[capacity] for shape in job.shapes if capacity in shape.vector), default=None)


def _outranks(other: WaitingJob, job: RunningJob, walk: Walked) -> bool:
    """Tell whether the waiting job may stop the other by its priority, or take back what its team lends."""
    tier = walk.quotas.tier(job.name)
    if walk.quotas.tier(other.name) != tier:
        return walk.quotas.tier(other.name) < tier
    return other.priority - walk.pool.preemption.min_priority_gap >= job.priority


def _frees_by(job: RunningJob, to: int, walk: Walked) -> datetime | None:
    """Return when the grown job is certain to have given its instances back; None: it is not known.

    The run time that is left counts instances times seconds, without what no checkpoint is known to keep.
    """
    at_most, since, widths = job.expected.at_most, job.training_since, job.widths
    if at_most is None or since is None or widths is None:
        return None
    kept = max((job.checkpoint.last or since) - since, timedelta())
    left = (at_most - kept) * sum(job.vector.values()) / to
    longest = max(left, LEAST_RUNTIME * widths.largest / to)
    return walk.now + END_SLACK + walk.pool.capacity_wait + longest + END_SLACK


def _scarce(job: RunningJob, walk: Walked) -> str | None:
    """Say until when a start that AWS had no instances for keeps the job from a growth; None: none does."""
    (capacity,) = job.vector
    records = walk.snapshot.start_records
    at = None if capacity.is_plan else records.last_no_capacity_end(capacity, now=walk.now)
    if at is None:
        return None
    return f"not before {at + RECENT:%d %b %H:%M} UTC, as AWS had no {capacity} at {at:%H:%M} UTC"
