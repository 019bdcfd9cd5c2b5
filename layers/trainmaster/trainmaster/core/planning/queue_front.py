"""Head of the queue: the first job to wait for each type, which no other may delay and reasons name."""

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
    worded: dict[tuple[str, str], Later] = field(default_factory=dict)
    """Reasons that were worded, by team and the job ahead."""

    def ahead(self, vector: Vector) -> tuple[BackfillReservation, ...]:
        """Return the reservations on the same types, each once."""
        if not self.reserved:
            return ()
        by_id = {
            id(reservation): reservation
            for capacity in vector
            if (reservation := self.reserved.get(capacity)) is not None
        }
        return tuple(by_id.values())

    def is_reserved(self, vector: Vector) -> bool:
        """Tell whether a job waits for each of its types."""
        return vector.keys() <= self.reserved.keys()

    def reserve(self, reservation: BackfillReservation) -> None:
        for capacity in reservation.vector:
            self.reserved.setdefault(capacity, reservation)

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
