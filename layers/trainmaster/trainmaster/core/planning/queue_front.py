"""Who waits first for each type: those behind must not delay it, and their reasons name it."""

from dataclasses import dataclass, field
from functools import partial

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.plan_reasons import Later
from trainmaster.core.planning.snapshot import WaitingJob


@dataclass(kw_only=True)
class QueueFront:
    reserved: dict[Capacity, BackfillReservation] = field(default_factory=dict)
    """The first job that waits for a type."""
    held: dict[Capacity, BackfillReservation] = field(default_factory=dict)
    """The first job that capacity is being made for, by type; only to say so to those behind it."""
    told: dict[tuple[str, str], Later] = field(default_factory=dict)
    """By team, and the job ahead."""

    def ahead(self, vector: Vector) -> tuple[BackfillReservation, ...]:
        """Reservations on the same types, each once."""
        if not self.reserved:
            return ()
        found = {id(one): one for capacity in vector if (one := self.reserved.get(capacity)) is not None}
        return tuple(found.values())

    def is_reserved(self, vector: Vector) -> bool:
        """Whether somebody waits for each of its types."""
        return vector.keys() <= self.reserved.keys()

    def reserve(self, reservation: BackfillReservation) -> None:
        for capacity in reservation.vector:
            self.reserved.setdefault(capacity, reservation)

    def makes_room(self, job: WaitingJob, vector: Vector) -> None:
        """Capacity is being made for it."""
        reservation = BackfillReservation(job=job, vector=vector, at=None, extra={})
        for capacity in vector:
            self.held.setdefault(capacity, reservation)

    def holder(self, vector: Vector) -> BackfillReservation | None:
        return next((self.held[one] for one in vector if one in self.held), None)

    def behind(self, job: WaitingJob, first: BackfillReservation) -> Later:
        """In the same words for all of a team."""
        known = (job.team, first.job.name)
        words = self.told.get(known)
        if words is None:
            words = self.told[known] = Later(partial(wait_reasons.ahead, job, first))
        return words
