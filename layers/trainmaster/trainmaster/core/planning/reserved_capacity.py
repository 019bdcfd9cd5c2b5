"""Instances that reservations keep for one team's jobs, while a plan gives capacity away.

What a team uses counts towards its reservation first. What is left of that is free for its jobs alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.capacity import ASKED_TO_STOP, minus, pool_vector, take
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.reservation import Reservation, Reserved


@dataclass(slots=True, kw_only=True)
class ReservedCapacity:
    """Instances that teams have reserved and do not use."""

    left: dict[str, dict[Capacity, int]] = field(default_factory=dict)
    """Counts by team; one is below zero where the team uses more than it has reserved."""

    @classmethod
    def of(cls, reserved: Reserved) -> "ReservedCapacity":
        """Return all of what is reserved, none of it used."""
        return cls(
            left={
                team: {Capacity(name): count for name, count in instances.items()}
                for team, instances in reserved.items()
            }
        )

    def __bool__(self) -> bool:
        return bool(self.left)

    def concerns(self, capacity: Capacity) -> bool:
        """Tell whether a team has any of it reserved."""
        return any(capacity in left for left in self.left.values())

    def use(self, team: str, vector: Vector, *, times: int = 1) -> None:
        """Count instances that the team takes; ``times=-1`` gives them back."""
        left = self.left.get(team)
        if left is not None:
            take(left, {capacity: vector[capacity] for capacity in vector if capacity in left}, times=times)

    def without(self, stopped: Iterable[RunningJob]) -> "ReservedCapacity":
        """Return what would be left if these jobs gave their instances back."""
        rest = ReservedCapacity(left={team: dict(left) for team, left in self.left.items()})
        for job in stopped:
            rest.use(job.team, job.vector, times=-1)
        return rest

    def kept_from(self, team: str | None) -> dict[Capacity, int]:
        """Return what is kept for other teams than this; None: for any team."""
        kept: dict[Capacity, int] = {}
        for other, left in self.left.items():
            if other != team:
                for capacity, count in left.items():
                    kept[capacity] = kept.get(capacity, 0) + max(count, 0)
        return kept

    def beyond(self, team: str, vector: Vector) -> Vector:
        """Return the part of what the team's job would take that is not reserved for it."""
        left = self.left.get(team)
        if left is None:
            return vector
        over = {capacity: count - max(left.get(capacity, 0), 0) for capacity, count in vector.items()}
        return {capacity: count for capacity, count in over.items() if count > 0}

    def gives(self, team: str, vector: Vector) -> Vector:
        """Return what others could use if the team gave this back: not what is reserved for it."""
        left = self.left.get(team)
        if left is None:
            return vector
        return {
            capacity: min(count, max(-left[capacity], 0)) if capacity in left else count
            for capacity, count in vector.items()
        }


@dataclass(slots=True, kw_only=True)
class Room:
    """Instances that a plan may give away; a part of them may be kept for the jobs of one team."""

    counts: dict[Capacity, int]
    """All of them. A count is below zero if capacity was lowered, or victims still stop."""
    reserved: ReservedCapacity

    def of(self, team: str | None) -> dict[Capacity, int]:
        """Return what the team's jobs may use; None: what is kept for no team."""
        return minus(self.counts, self.reserved.kept_from(team)) if self.reserved else self.counts

    def give(self, team: str, vector: Vector, *, times: int = 1) -> None:
        """Count what is given to a job of the team, or kept for it; ``times=-1`` takes it back."""
        take(self.counts, vector, times=times)
        self.reserved.use(team, vector, times=times)


def use_of_teams(
    reserved: ReservedCapacity,
    snapshot: Snapshot,
    holds: Iterable[PreemptionReservation],
    *,
    stopping: bool,
) -> None:
    """Count what teams use, and what is held for their jobs.

    Args:
        reserved: What is reserved; it is changed.
        snapshot: The pool as read.
        holds: Reservations for preemptors that go on.
        stopping: Whether jobs that were asked to stop count as using their instances.
    """
    for job in snapshot.running:
        if stopping or job.state not in ASKED_TO_STOP:
            reserved.use(job.team, job.vector)
    teams = {job.name: job.team for job in snapshot.waiting}
    for hold in holds:
        reserved.use(teams.get(hold.preemptor, ""), hold.vector)


def left_for_all(pool: PoolPolicy) -> dict[Capacity, int]:
    """Return the capacity of a pool without what is reserved."""
    return Room(counts=pool_vector(pool), reserved=ReservedCapacity.of(pool.reserved)).of(None)


def on_reserved(pool: PoolPolicy, running: Iterable[RunningJob]) -> Mapping[str, str]:
    """Return the teams of the jobs that run on what is reserved for them, by job.

    The highest priority is on it first. A stop of any of them frees nothing for another team, or too little.
    """
    if not pool.reserved:
        return {}
    reserved = ReservedCapacity.of(pool.reserved)
    teams: dict[str, str] = {}
    for job in sorted(running, key=lambda job: (-job.priority, job.rank)):
        left = reserved.left.get(job.team)
        if left is None or job.state in ASKED_TO_STOP:
            continue
        if any(left.get(capacity, 0) > 0 for capacity in job.vector):
            teams[job.name] = job.team
            reserved.use(job.team, job.vector)
    return teams


def reservations_at(
    pool: PoolPolicy, vector: Vector, instant: datetime, *, of_others_than: str
) -> list[Reservation]:
    """Return the reservations of other teams on the job's types at an instant, the last to end first."""
    types = {capacity.instance_type for capacity in vector if capacity.is_on_demand}
    holding = [
        reservation
        for reservation in pool.reservations
        if reservation.team != of_others_than
        and reservation.holds_at(instant)
        and not types.isdisjoint(reservation.instances)
    ]
    return sorted(holding, key=lambda reservation: reservation.to, reverse=True)
