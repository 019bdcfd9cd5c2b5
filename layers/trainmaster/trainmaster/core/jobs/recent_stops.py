"""Stops of one job for others within a day: each protects its next attempts for twice as long."""

from dataclasses import dataclass
from datetime import datetime, timedelta

REMEMBERED = timedelta(days=1)
"""Longest time between two stops of a job that count together."""
FIRST_PROTECTION = timedelta(minutes=15)
"""Training time for which the attempts after one stop are protected; each further stop doubles it."""
LONGEST_PROTECTION = timedelta(days=1)
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentStops:
    """Stops of a job for others, each within a day of the one before it."""

    count: int
    at: datetime
    """End of the attempt that was stopped last, UTC."""
    lost: timedelta = timedelta()
    """Training that the last stop lost, or the start-up of an attempt that had not trained yet."""

    def are_recent(self, *, now: datetime) -> bool:
        """Tell whether the last one was within a day."""
        return now - self.at <= REMEMBERED

    def protects_for(self, *, now: datetime) -> timedelta:
        """Return how long an attempt of the job trains before it is stopped as readily as others.

        It is nothing once the last stop was more than a day ago.
        """
        if not self.are_recent(now=now):
            return timedelta()
        # Unbounded doubling would overflow ``timedelta`` long before LONGEST_PROTECTION cuts it.
        doubled: timedelta = FIRST_PROTECTION * 2 ** min(self.count - 1, _MOST_DOUBLINGS)
        return min(doubled, LONGEST_PROTECTION)


def after_stop(known: RecentStops | None, *, at: datetime, lost: timedelta) -> RecentStops:
    """Count one more stop of a job for another.

    Args:
        known: The stops before it; None if there are none, or an earlier release did not record them.
        at: When the stopped attempt ended.
        lost: As ``RecentStops.lost``.
    """
    before = known.count if known is not None and known.are_recent(now=at) else 0
    return RecentStops(count=before + 1, at=at, lost=lost)
