"""A period that somebody asks about."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

ONE_DAY = timedelta(days=1)
LONGEST_ATTEMPT = timedelta(days=60)
"""Claim to end. Source: CreateTrainingJob, 28 days of run time after up to 28 of waiting for capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Half open: ``since`` is in it, ``until`` is not."""

    since: datetime
    until: datetime

    def overlaps(self, began: datetime, ended: datetime | None) -> bool:
        """``ended``: None, it goes on."""
        return began < self.until and (ended is None or ended > self.since or began >= self.since)

    def days(self, *, longer: timedelta = timedelta()) -> Iterator[date]:
        """UTC days that it touches; ``longer``: and those up to so long after its end."""
        day, last = self.since.astimezone(UTC).date(), (self.until + longer).astimezone(UTC).date()
        while day <= last:
            yield day
            day += ONE_DAY
