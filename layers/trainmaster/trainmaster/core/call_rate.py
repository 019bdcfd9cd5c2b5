"""Rate limit: how often the account may call an operation of AWS, learned from refusals.

All callers share one "not before": a refused call makes everybody call less often, an accepted one a little
more often. Nothing is written or waited for if no call was refused for a while.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

NO_GAP = timedelta()
FIRST_GAP = timedelta(seconds=0.5)
LONGEST_GAP = timedelta(seconds=15)
SLOWER = 1.1
FASTER = 0.97
"""Factors of the gap after a refusal and after an accepted call: between the two, one call in four is
refused, and most of the rate is used."""
LEARNED_FOR = timedelta(minutes=10)
"""Time without another refusal after which the learned gap is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRate:
    """The rate limit of one operation. The default value means that no call was refused."""

    gap: timedelta = NO_GAP
    """Time between two calls."""
    not_before: datetime | None = None
    """Earliest instant of the next call."""
    throttled_at: datetime | None = None
    """When AWS last refused a call."""

    def turn(self, now: datetime) -> datetime:
        return now if self.not_before is None else max(now, self.not_before)

    def holds(self, now: datetime) -> bool:
        """Tell whether the limit still applies; if not, everybody may call at once."""
        return self.throttled_at is not None and now - self.throttled_at < LEARNED_FOR


def taken(pace: CallRate, *, at: datetime, accepted: int) -> CallRate:
    """Return the limit after the turn ``at`` was taken.

    ``accepted`` counts calls accepted since its last change.

    Args:
        pace: The limit before.
        at: Instant of the turn that was taken.
        accepted: Number of calls that AWS accepted since the limit last changed.
    """
    gap: timedelta = pace.gap * FASTER**accepted
    return replace(pace, gap=gap, not_before=at + gap)


def refused(pace: CallRate, *, now: datetime, draw: float) -> CallRate:
    """Return the limit after a refusal, with full jitter. Refusals that come together count as one.

    Args:
        pace: The limit before.
        now: When the call was refused.
        draw: Random number from 0 to 1.
    """
    if pace.throttled_at is not None and pace.holds(now) and now - pace.throttled_at < pace.gap:
        return pace
    gap = min(max(pace.gap * SLOWER, FIRST_GAP), LONGEST_GAP) if pace.holds(now) else FIRST_GAP
    return CallRate(gap=gap, not_before=max(now + gap * draw, pace.turn(now)), throttled_at=now)
