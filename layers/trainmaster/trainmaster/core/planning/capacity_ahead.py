"""A pool's capacity over time: who may start before less of it is there, and who is stopped then.

Less is there for all when the calendar lowers it, and for other teams when a reservation begins. Such an
instant is like a backfill reservation: a job starts before it if it is certain to have ended by then, if
there is room for it beside the others that stay, or if it can be stopped then without losing more than the
time since its last checkpoint.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector, fits
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.capacity import ASKED_TO_STOP
from trainmaster.core.planning.reserved_capacity import ReservedCapacity, Room, reservations_at
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom

FreesBy = Callable[[WaitingJob, Shape], datetime]


@dataclass(slots=True, kw_only=True)
class _Lowering:
    """An instant at which less is there than now."""

    change: CapacityFrom
    left: Room
    """Instances of the types concerned that jobs which stay leave free then."""

    def stays(self, job: WaitingJob | RunningJob, capacity: Capacity) -> bool:
        """Tell whether a job would hold on to its instances, or lose work if it does not."""
        is_stopped = capacity.instance_type in self.change.stops or self.left.reserved.concerns(capacity)
        return not (is_stopped and job.preemptible is not False and job.has_checkpoint)

    def count(self, job: WaitingJob | RunningJob, vector: Vector, *, ends_by: datetime | None) -> None:
        """Take what the job holds on to beyond this instant."""
        if ends_by is None or ends_by > self.change.at:
            kept = {
                kind: vector[kind] for kind in vector if kind in self.left.counts and self.stays(job, kind)
            }
            self.left.give(job.team, kept)


@dataclass(slots=True, kw_only=True)
class CapacityAhead:
    """The lowerings of a pool to come, while a plan gives its capacity away."""

    pool: PoolPolicy
    lowerings: tuple[_Lowering, ...] = ()

    @classmethod
    def of(cls, pool: PoolPolicy, running: Iterable[RunningJob]) -> Self:
        lowerings = tuple(_lowerings(pool))
        for job in running if lowerings else ():
            if job.state not in ASKED_TO_STOP:
                for lowering in lowerings:
                    lowering.count(job, job.vector, ends_by=job.expected.ends_by)
        return cls(pool=pool, lowerings=lowerings)

    def too_big(self, job: WaitingJob, vector: Vector, capacity: Vector, *, now: datetime) -> Reason:
        """Say that not even the whole pool has so many instances now, and when it has.

        Args:
            job: A job that waits.
            vector: What it needs.
            capacity: The capacity of the pool without what is reserved for other teams.
            now: Instant of the pass.
        """
        spot = {Capacity(name, CapacityType.SPOT): count for name, count in self.pool.spot_capacity.items()}
        if fits(vector, _vector(self.pool.capacity) | spot):
            keeping = reservations_at(self.pool, vector, now, of_others_than=job.team)
            if keeping:
                return wait_reasons.kept_for_team(vector, capacity, reservation=keeping[0])
        later = next(
            (change.at for change in self.pool.ahead if fits(vector, _left_for(job.team, change) | spot)),
            None,
        )
        if later is None:
            return wait_reasons.too_big(vector, capacity)
        return wait_reasons.lower_until(vector, capacity, until=later)

    def kept(self, job: WaitingJob, vector: Vector, free: Room, *, now: datetime) -> Reason | None:
        """Say which reservation keeps what is free from the job; None: none does, or too little is free."""
        if not free.reserved or not fits(vector, free.counts):
            return None
        keeping = reservations_at(self.pool, vector, now, of_others_than=job.team)
        return (
            wait_reasons.kept_for_team(vector, free.of(job.team), reservation=keeping[0]) if keeping else None
        )

    def refusal(self, job: WaitingJob, shape: Shape, *, frees_by: FreesBy) -> Reason | None:
        """Return why the job may not start now; None: no lowering concerns it.

        Args:
            job: A job that waits.
            shape: The shape that it would start in.
            frees_by: Tells when it would be certain to have given its instances back.
        """
        if not self.lowerings:
            return None
        until = frees_by(job, shape)
        for lowering in self.lowerings:
            if until <= lowering.change.at:
                return None
            left = lowering.left.of(job.team)
            for capacity, count in shape.vector.items():
                if count > left.get(capacity, count) and lowering.stays(job, capacity):
                    return self._past(lowering.change, job, {capacity: count}, until=until)
        return None

    def _past(self, change: CapacityFrom, job: WaitingJob, vector: Vector, *, until: datetime) -> Reason:
        """Name what the job would be in the way of: a reservation that begins, else the calendar."""
        (capacity,) = vector
        keeping = reservations_at(self.pool, vector, change.at, of_others_than=job.team)
        if keeping:
            return wait_reasons.past_begin(vector, until=until, reservation=keeping[0])
        there = change.capacity.get(capacity.instance_type, 0)
        return wait_reasons.past_lowering(vector, until=until, lowered_at=change.at, there=there)

    def start(self, job: WaitingJob, vector: Vector, *, until: datetime) -> None:
        """Count a job that starts."""
        for lowering in self.lowerings:
            lowering.count(job, vector, ends_by=until)


def _lowerings(pool: PoolPolicy) -> Iterator[_Lowering]:
    """Yield the changes after which less is there than now, of some type, for all or for some team."""
    for change in pool.ahead:
        left = {
            Capacity(name): change.capacity.get(name, 0)
            for name, count in pool.capacity.items()
            if change.capacity.get(name, 0) < count or _begins(pool, change, name)
        }
        if left:
            reserved = ReservedCapacity.of(change.reserved)
            yield _Lowering(change=change, left=Room(counts=left, reserved=reserved))


def _begins(pool: PoolPolicy, change: CapacityFrom, instance_type: str) -> bool:
    """Tell whether a team has more of a type reserved from a change on than now."""
    return any(
        instances.get(instance_type, 0) > pool.reserved.get(team, {}).get(instance_type, 0)
        for team, instances in change.reserved.items()
    )


def _left_for(team: str, change: CapacityFrom) -> dict[Capacity, int]:
    """Return what a change leaves to a team beside what is reserved for others."""
    return Room(counts=_vector(change.capacity), reserved=ReservedCapacity.of(change.reserved)).of(team)


def _vector(capacity: Mapping[str, int]) -> dict[Capacity, int]:
    return {Capacity(name): count for name, count in capacity.items()}
