"""EASY backfill: the first job that has to wait gets a reservation; others pass it if they cannot delay it.

Source: Lifka (1995), "The ANL/IBM SP scheduling system"; only ends that are certain count, never predictions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.planning.capacity import ASKED_TO_STOP, longest_run, minus, take
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy

End = tuple[datetime, Vector]
"""Instant from which the instances are certain to be free, and the instances."""


@dataclass(slots=True, kw_only=True)
class BackfillReservation:
    """Instant and instances at which a waiting job is certain to fit."""

    job: WaitingJob
    vector: Vector
    at: datetime | None
    """The instant; None: too few of the running jobs are certain to end."""
    extra: dict[Capacity, int]
    """Instances left beside the job at that instant; jobs that pass it use them up."""

    def admits(self, vector: Vector, *, ends_by: datetime, instead_of: Iterable[RunningJob] = ()) -> bool:
        """Tell whether a job that starts now cannot delay the reservation.

        Args:
            vector: Instances that it takes.
            ends_by: When it is certain to have given them back.
            instead_of: Jobs that are stopped for it: it may hold on to what they would have held.
        """
        if self.at is None:
            return False
        if ends_by <= self.at:
            return True
        extra = self._extra(instead_of, self.at)
        return all(
            extra.get(capacity, 0) >= count for capacity, count in vector.items() if capacity in self.vector
        )

    def passed_by(self, vector: Vector, *, ends_by: datetime, instead_of: Iterable[RunningJob] = ()) -> None:
        """Count a job that was admitted."""
        if self.at is not None and ends_by > self.at:
            self.extra = minus(self._extra(instead_of, self.at), vector)

    def _extra(self, instead_of: Iterable[RunningJob], at: datetime) -> dict[Capacity, int]:
        extra = dict(self.extra)
        for victim in instead_of:
            if victim.expected.ends_by is None or victim.expected.ends_by > at:
                take(extra, victim.vector, times=-1)
        return extra


def reserve(
    job: WaitingJob, shapes: Sequence[Shape], *, free: Vector, ends: Sequence[End], now: datetime
) -> BackfillReservation:
    """Return the earliest instant at which one of the shapes is certain to fit.

    Args:
        job: A job that has to wait.
        shapes: Shapes that it may start in.
        free: Instances that it may use now, with those that warm pools keep.
        ends: ``certain_ends`` of the jobs that hold the rest.
        now: Instant of the pass.
    """
    reservations = [_reserve(job, shape, free, ends, now) for shape in shapes]
    known = [reservation for reservation in reservations if reservation.at is not None]
    return min(known, key=lambda reservation: reservation.at or now) if known else reservations[0]


def certain_ends(running: Iterable[RunningJob], *, now: datetime) -> list[End]:
    """Return the ends that can be relied on, the next first.

    A job that was asked to stop is as good as gone.
    """
    soon = now + END_SLACK
    ends: list[End] = []
    for job in running:
        ends_by = job.expected.ends_by
        if job.state in ASKED_TO_STOP:
            # SageMaker gives a job 120 seconds to save after a stop, so END_SLACK is ample.
            ends.append((min(ends_by or soon, soon), job.vector))
        elif ends_by is not None:
            ends.append((ends_by, job.vector))
    ends.sort(key=itemgetter(0))
    return ends


@dataclass(kw_only=True)
class TeamEnds:
    """Certain ends by the team that they free instances for.

    What a job uses of its team's reservation (``reserved_capacity``) comes free for that team alone.
    """

    running: Sequence[RunningJob]
    on_reserved: Mapping[str, str]
    """Teams of the jobs that run on what is reserved for them, by job."""
    now: datetime
    _known: dict[str, list[End]] = field(default_factory=dict)

    def of(self, team: str) -> list[End]:
        key = team if team in self.on_reserved.values() else ""
        if key not in self._known:
            running = self.running
            if self.on_reserved:
                running = [job for job in running if self.on_reserved.get(job.name, key) == key]
            self._known[key] = certain_ends(running, now=self.now)
        return self._known[key]


def frees_by(
    job: WaitingJob, shape: Shape, pool: PoolPolicy, snapshot: Snapshot, *, now: datetime
) -> datetime:
    """Return when a job that starts now in this shape is certain to have given its instances back.

    Before it trains SageMaker may look for instances for as long as the pool's ``capacity_wait``; a training
    plan has them.

    Args:
        job: A waiting job.
        shape: The shape that it would start in.
        pool: The policy of its pool.
        snapshot: The pool, for the longest wait for spot instances.
        now: Instant of the start.
    """
    longest = longest_run(job, shape)
    if shape.capacity_type is CapacityType.SPOT:
        return now + (job.max_wait or longest + snapshot.spot_max_wait) + END_SLACK
    wait = timedelta() if shape.is_on_plan else pool.capacity_wait
    return now + wait + longest + END_SLACK


def _reserve(
    job: WaitingJob, shape: Shape, free: Vector, ends: Sequence[End], now: datetime
) -> BackfillReservation:
    # Add up ends in the order of time until every type that the shape needs suffices.
    available = dict(free)
    missing = {capacity for capacity, count in shape.vector.items() if available.get(capacity, 0) < count}
    at = now
    for end, vector in ends:
        if not missing and end > at:
            break  # of several that end at one instant all count, whichever was read first
        at = max(at, end)
        for capacity, count in vector.items():
            available[capacity] = available.get(capacity, 0) + count
            if available[capacity] >= shape.vector.get(capacity, 0):
                missing.discard(capacity)
    if missing:
        return BackfillReservation(job=job, vector=shape.vector, at=None, extra={})
    return BackfillReservation(job=job, vector=shape.vector, at=at, extra=minus(available, shape.vector))
