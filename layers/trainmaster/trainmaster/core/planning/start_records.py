"""Keep how starts of each type ended of late, so that a plan knows how likely AWS is to have no instances.

An attempt that trained counts for its types, and one that ended for want of capacity against them. Both count
less the older they are (``core.durations.decay``), and a few starts that went well are taken for granted: one
bad end in an empty record is no certainty. A type without a bad end has the chance 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.durations.decay import counted_at, era_of, weight_at
from trainmaster.core.jobs.instances import Capacity, Vector

GRANTED = 2.0
"""Starts that are assumed to have trained, beside those of the record."""
RECENT = timedelta(days=1)
"""Time after an end for want of capacity in which its type counts as short of instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLesson:
    """How one start ended: its attempt trained, or AWS had no instances for it."""

    vector: Vector
    trained: bool
    at: datetime
    """When that became known, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """Weights of the starts of one type, by the year that they fall in."""

    trained: Mapping[int, int] = field(default_factory=dict)
    unserved: Mapping[int, int] = field(default_factory=dict)
    """Weights of the starts that ended for want of capacity."""
    last_unserved: datetime | None = None
    """When the last of these ended; None: none did, or it is not known."""

    def after(self, lesson: StartLesson) -> "StartRecord":
        """Return the record with one more start."""
        year, weight = era_of(lesson.at), weight_at(lesson.at)
        if lesson.trained:
            return replace(self, trained={**self.trained, year: self.trained.get(year, 0) + weight})
        return replace(
            self,
            unserved={**self.unserved, year: self.unserved.get(year, 0) + weight},
            last_unserved=lesson.at,
        )

    def no_capacity_chance(self, *, now: datetime) -> float:
        """Return the chance, from 0 to below 1, that a start ends for want of capacity.

        It changes with each start and at midnight UTC, and not in between: equal plans have equal prices.
        """
        if not self.unserved:
            return 0.0
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        unserved = counted_at(self.unserved, now=midnight)
        return unserved / (unserved + counted_at(self.trained, now=midnight) + GRANTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecords:
    """The records of a pool's types; a type that is missing has none."""

    by_capacity: Mapping[Capacity, StartRecord] = field(default_factory=dict)

    def after(self, lesson: StartLesson | None) -> "StartRecords":
        """Return the records with one more start; None changes nothing."""
        if lesson is None:
            return self
        changed = {
            capacity: self.by_capacity.get(capacity, StartRecord()).after(lesson)
            for capacity in lesson.vector
        }
        return replace(self, by_capacity={**self.by_capacity, **changed})

    def no_capacity_chance(self, capacity: Capacity, *, now: datetime) -> float:
        """Return the chance that a start of this type ends for want of capacity."""
        record = self.by_capacity.get(capacity)
        return 0.0 if record is None else record.no_capacity_chance(now=now)

    def chance_of(self, vector: Vector, *, now: datetime) -> float:
        """Return the chance that a start of these instances ends so: that of its scarcest type."""
        if not self.by_capacity:
            return 0.0  # nearly always
        return max((self.no_capacity_chance(capacity, now=now) for capacity in vector), default=0.0)

    def last_no_capacity_end(self, capacity: Capacity, *, now: datetime) -> datetime | None:
        """Return when a start of this type last ended for want of capacity; None: not within ``RECENT``."""
        record = self.by_capacity.get(capacity)
        at = None if record is None else record.last_unserved
        return None if at is None or now - at >= RECENT else at
