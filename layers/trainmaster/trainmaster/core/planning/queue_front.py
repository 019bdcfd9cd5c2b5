"""Head of the queue: the first job to wait for each type, which no other may delay and reasons name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.plan_reasons import Later
from trainmaster.core.planning.reserved_capacity import ReservedCapacity
from trainmaster.core.planning.snapshot import WaitingJob


@dataclass(kw_only=True)
class QueueFront:
    kept: ReservedCapacity
    """Instances kept for teams: their jobs queue for them among themselves."""
    backfills: bool
    """Whether any job may pass another that waits for the same types."""
    reserved: dict[Capacity, BackfillReservation] = field(default_factory=dict)
    """The first job that waits for a type."""
    of_team: dict[str, dict[Capacity, BackfillReservation]] = field(default_factory=dict)
    """Likewise the first job of each team for which instances are kept."""
    held: dict[Capacity, BackfillReservation] = field(default_factory=dict)
    """The first job that capacity is being made for, by type; only to say so to those behind it."""
    worded: dict[tuple[str, str], Later] = field(default_factory=dict)
    """Reasons that were worded, by team and the job ahead."""

    def ahead(self, job: WaitingJob, vector: Vector) -> tuple[BackfillReservation, ...]:
        """Return the reservations that the job may not delay by taking these instances, each once.

        On instances that are kept for its team only the team's own jobs are ahead of it.
        """
        if not self.reserved:
            return ()
        firsts = [self.reserved.get(capacity) for capacity in self.kept.beyond(job.team, vector)]
        own = self.of_team.get(job.team)
        if own is not None:
            firsts += [own.get(capacity) for capacity in vector]
        by_id = {id(reservation): reservation for reservation in firsts if reservation is not None}
        return tuple(by_id.values())

    def admits(
        self, job: WaitingJob, vector: Vector, ahead: Sequence[BackfillReservation], *, ends_by: datetime
    ) -> bool:
        """Tell whether a job that starts now delays none of the reservations ahead."""
        return not ahead or (
            self.backfills
            and all(first.admits(self._takes(job, vector, first), ends_by=ends_by) for first in ahead)
        )

    def passes(
        self, job: WaitingJob, vector: Vector, ahead: Iterable[BackfillReservation], *, ends_by: datetime
    ) -> None:
        """Count a job that was admitted."""
        for first in ahead:
            first.passed_by(self._takes(job, vector, first), ends_by=ends_by)

    def _takes(self, job: WaitingJob, vector: Vector, first: BackfillReservation) -> Vector:
        """Return the instances that the job ahead could use if this one did not take them."""
        return vector if first.job.team == job.team else self.kept.beyond(job.team, vector)

    def is_reserved(self, job: WaitingJob, vector: Vector) -> bool:
        """Tell whether a job waits for each of its types."""
        own = self.of_team.get(job.team, {}) if job.team in self.kept.left else self.reserved
        return vector.keys() <= self.reserved.keys() and vector.keys() <= own.keys()

    def reserve(self, reservation: BackfillReservation) -> None:
        team = reservation.job.team
        for capacity in reservation.vector:
            self.reserved.setdefault(capacity, reservation)
            if team in self.kept.left:
                self.of_team.setdefault(team, {}).setdefault(capacity, reservation)

    @property
    def wanted(self) -> frozenset[Capacity]:
        """Types that some waiting job could use: their free instances are kept for it, or come to it."""
        return frozenset((*self.reserved, *self.held))

    def on(self, capacity: Capacity) -> list[BackfillReservation]:
        """Return the reservations that count on a type, of the pool's first job and of teams' own."""
        firsts = [self.reserved, *self.of_team.values()]
        by_id = {id(first[capacity]): first[capacity] for first in firsts if capacity in first}
        return list(by_id.values())

    def makes_room(self, job: WaitingJob, vector: Vector) -> None:
        """Record that capacity is being made for a job."""
        reservation = BackfillReservation(job=job, vector=vector, at=None, extra={})
        for capacity in vector:
            self.held.setdefault(capacity, reservation)

    def holder(self, vector: Vector) -> BackfillReservation | None:
        return next((self.held[capacity] for capacity in vector if capacity in self.held), None)

    def behind(self, job: WaitingJob, first: BackfillReservation) -> Later:
        """Return the reason of a job behind another, in the same words for all of a team."""
        known = (job.team, first.job.name)
        words = self.worded.get(known)
        if words is None:
            words = self.worded[known] = Later(partial(wait_reasons.ahead, job, first))
        return words
