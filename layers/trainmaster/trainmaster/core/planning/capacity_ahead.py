"""A pool's capacity over time: who may start before less of it is there.

Less is there for all when a calendar or a plan lowers it, and for other teams when a reservation begins. Such
an instant is like a backfill reservation: a job starts before it if it is certain to have ended by then, if
there is room for it beside the others that stay, or if it can be stopped then without losing more than the
time since its last checkpoint. ``drains`` stops what is above then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector, fits
from trainmaster.core.planning import reservation_reasons, wait_reasons
from trainmaster.core.planning.capacity import ASKED_TO_STOP
from trainmaster.core.planning.reserved_capacity import ReservedCapacity, Room, reservations_at
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.plan_windows import PlanChange

FreesBy = Callable[[WaitingJob, Shape], datetime]


LEAST_STAY = timedelta(minutes=15)
"""Least time to the closing of a plan's window in which a job that saves starts: less is spent on loading."""


@dataclass(slots=True, kw_only=True)
class _Lowering:
    """An instant at which less is there than now."""

    at: datetime
    left: Room
    """Instances of the types concerned that jobs which stay leave free then."""
    there: Vector
    """Instances of the lowered types that there are from then on."""
    stops: frozenset[Capacity]
    """Those of them whose jobs are stopped."""

    def stays(self, job: WaitingJob | RunningJob, capacity: Capacity) -> bool:
        """Tell whether a job would hold on to its instances, or lose work if it does not."""
        is_stopped = capacity in self.stops or self.left.reserved.concerns(capacity)
        return not (is_stopped and job.preemptible is not False and job.has_checkpoint)

    def count(self, job: WaitingJob | RunningJob, vector: Vector, *, ends_by: datetime | None) -> None:
        """Take what the job holds on to beyond this instant."""
        if ends_by is None or ends_by > self.at:
            kept = {
                kind: vector[kind] for kind in vector if kind in self.left.counts and self.stays(job, kind)
            }
            self.left.give(job.team, kept)


@dataclass(slots=True, kw_only=True)
class CapacityAhead:
    """The lowerings of a pool to come, while a plan gives its capacity away."""

    pool: PoolPolicy
    now: datetime
    lowerings: tuple[_Lowering, ...] = ()

    @classmethod
    def of(cls, pool: PoolPolicy, running: Iterable[RunningJob], *, now: datetime) -> Self:
        lowerings = tuple(_lowerings(pool))
        for job in running if lowerings else ():
            if job.state not in ASKED_TO_STOP:
                for lowering in lowerings:
                    lowering.count(job, job.vector, ends_by=job.expected.ends_by)
        return cls(pool=pool, now=now, lowerings=lowerings)

    def too_big(self, job: WaitingJob, vector: Vector, capacity: Vector) -> Reason:
        """Say that not even the whole pool has so many instances now, and when it has.

        Args:
            job: A job that waits.
            vector: What it needs.
            capacity: The capacity of the pool without what is reserved for other teams.
        """
        if any(kind.is_plan for kind in vector):
            later = next((change.at for change in self.pool.plans_ahead if _opens(change, vector)), None)
            return wait_reasons.no_window(vector, opens=later)
        spot = {Capacity(name, CapacityType.SPOT): count for name, count in self.pool.spot_capacity.items()}
        if fits(vector, _vector(self.pool.capacity) | spot):
            keeping = reservations_at(self.pool, vector, self.now, of_others_than=job.team)
            if keeping:
                return reservation_reasons.kept_for_team(vector, capacity, reservation=keeping[0])
        later = next(
            (change.at for change in self.pool.ahead if fits(vector, _left_for(job.team, change) | spot)),
            None,
        )
        if later is None:
            return wait_reasons.too_big(vector, capacity)
        return wait_reasons.lower_until(vector, capacity, until=later)

    def kept(self, job: WaitingJob, vector: Vector, free: Room) -> Reason | None:
        """Say which reservation keeps what is free from the job; None: none does, or too little is free."""
        if not free.reserved or not fits(vector, free.counts):
            return None
        keeping = reservations_at(self.pool, vector, self.now, of_others_than=job.team)
        if not keeping:
            return None
        return reservation_reasons.kept_for_team(vector, free.of(job.team), reservation=keeping[0])

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
            if until <= lowering.at:
                continue
            left = lowering.left.of(job.team)
            for capacity, count in shape.vector.items():
                if capacity not in lowering.left.counts or count <= left[capacity]:
                    continue
                if lowering.stays(job, capacity) or self._is_too_late(capacity, lowering):
                    return self._past(lowering, job, {capacity: count}, until=until)
        return None

    def _is_too_late(self, capacity: Capacity, lowering: _Lowering) -> bool:
        return capacity.is_plan and lowering.at - self.now < LEAST_STAY

    def _past(self, lowering: _Lowering, job: WaitingJob, vector: Vector, *, until: datetime) -> Reason:
        """Name what the job would be in the way of: a plan, a reservation that begins, or the calendar."""
        (capacity,) = vector
        if capacity.is_plan:
            return wait_reasons.past_window(vector, until=until, closes=lowering.at)
        keeping = reservations_at(self.pool, vector, lowering.at, of_others_than=job.team)
        if keeping:
            return reservation_reasons.past_begin(vector, until=until, reservation=keeping[0])
        there = lowering.there.get(capacity, 0)
        return wait_reasons.past_lowering(vector, until=until, lowered_at=lowering.at, there=there)

    def takes_back(self, team: str, in_use: Vector, *, until: datetime) -> bool:
        """Tell whether a lowering leaves less than what would be in use, before an instant.

        Args:
            team: The team that would use more.
            in_use: Instances in use with those that it would use more.
            until: When it would have given them back.
        """
        return any(
            lowering.at < until
            and capacity in lowering.there
            and count > lowering.there[capacity] - lowering.left.reserved.kept_from(team).get(capacity, 0)
            for lowering in self.lowerings
            for capacity, count in in_use.items()
        )

    def start(self, job: WaitingJob, vector: Vector, *, until: datetime) -> None:
        """Count a job that starts."""
        for lowering in self.lowerings:
            lowering.count(job, vector, ends_by=until)


def _lowerings(pool: PoolPolicy) -> Iterator[_Lowering]:
    """Yield the changes after which less is there than now, of some type, for all or for some team."""
    for change in pool.ahead:
        there = {
            Capacity(name, CapacityType.ON_DEMAND): change.capacity.get(name, 0)
            for name, count in pool.capacity.items()
            if change.capacity.get(name, 0) < count or _begins(pool, change, name)
        }
        if there:
            left = Room(counts=dict(there), reserved=ReservedCapacity.of(change.reserved))
            stops = frozenset(capacity for capacity in there if capacity.instance_type in change.stops)
            yield _Lowering(at=change.at, left=left, there=there, stops=stops)
    for closing in pool.plans_ahead:
        now = pool.plan_counts.get(closing.capacity)
        if now is not None and closing.count.kept < now.kept:
            there = {closing.capacity: closing.count.usable}
            left = Room(counts=dict(there), reserved=ReservedCapacity())
            yield _Lowering(at=closing.at, left=left, there=there, stops=frozenset(there))


def _opens(change: PlanChange, vector: Vector) -> bool:
    return all(kind == change.capacity and count <= change.count.usable for kind, count in vector.items())


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
