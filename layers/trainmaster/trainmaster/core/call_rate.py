"""How often the account may call an operation of AWS, as refusals for its rate teach it.

One "not before" for all of us: who is refused makes everybody call more rarely, who is not lets everybody
call a little more often. Nothing is written or waited for while nobody was refused for a while.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

NO_GAP = timedelta()
FIRST_GAP = timedelta(seconds=0.5)
LONGEST_GAP = timedelta(seconds=15)
SLOWER = 1.1
FASTER = 0.97
"""Between the two one call in four is refused, and most of the rate is used."""
LEARNED_FOR = timedelta(minutes=10)
"""Without another refusal for this long, what was learned is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRate:
    """Of one operation. The plain one: nobody has been refused."""

    gap: timedelta = NO_GAP
    """Between two calls."""
    not_before: datetime | None = None
    """The next call's turn."""
    throttled_at: datetime | None = None
    """When AWS last refused one."""

    def turn(self, now: datetime) -> datetime:
        return now if self.not_before is None else max(now, self.not_before)

    def holds(self, now: datetime) -> bool:
        """False: it says nothing any more, and everybody may call."""
        return self.throttled_at is not None and now - self.throttled_at < LEARNED_FOR


def taken(pace: CallRate, *, at: datetime, accepted: int) -> CallRate:
    """Somebody took the turn ``at``, after so many calls that AWS accepted since it was last changed."""
    gap: timedelta = pace.gap * FASTER**accepted
    return replace(pace, gap=gap, not_before=at + gap)


def refused(pace: CallRate, *, now: datetime, draw: float) -> CallRate:
    """AWS refused a call: full jitter before the next one. Refusals that come together count as one.

    Args:
        pace: As it was.
        now: When it was refused.
        draw: By chance, from 0 to 1.
    """
    if pace.throttled_at is not None and pace.holds(now) and now - pace.throttled_at < pace.gap:
        return pace
    gap = min(max(pace.gap * SLOWER, FIRST_GAP), LONGEST_GAP) if pace.holds(now) else FIRST_GAP
    return CallRate(gap=gap, not_before=max(now + gap * draw, pace.turn(now)), throttled_at=now)
