"""Past use of a pool by a team, forgotten with a half-life: sums that only grow, read with a factor.

All use decays at the same pace. So the value of an hour as of a fixed instant (one that comes a half-life
later counts twice there) never changes: each end adds a whole number, in any order, and reading multiplies
once. The fixed instants are the beginnings of periods of ``HALF_LIVES`` half-lives, so that numbers stay
within what DynamoDB adds exactly (38 digits).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias

from trainmaster.core.jobs.attempts import Attempt

HALF_LIFE = timedelta(days=7)
"""Half-life of attempts whose claim has none: the default of the policy."""
HALF_LIVES = 64
"""Half-lives of one period: 1,000 instances for 28 days are 5e31 of its units at the most."""
PERIODS_READ = 2
"""Periods that count: this one and the one before; of earlier ones nothing is left."""
PERIODS_CLEARED = 32
"""Periods before those that are cleared, when a team ends an attempt again after a long time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT = timedelta(milliseconds=1)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, order=True)
class UsePeriod:
    """A period of past use. ``number`` counts from 1970, in periods of ``HALF_LIVES`` half-lives."""

    half_life: timedelta
    number: int

    @classmethod
    def at(cls, instant: datetime, half_life: timedelta) -> Self:
        return cls(half_life=half_life, number=(instant - _EPOCH) // (HALF_LIVES * half_life))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a period as ``str()`` wrote it.

        Raises:
            ValueError: The text is none.
        """
        seconds, _, number = text.partition("#")
        half_life = timedelta(seconds=int(seconds))
        if half_life <= timedelta():
            raise ValueError(f"{text!r} has no half-life")
        return cls(half_life=half_life, number=int(number))

    def __str__(self) -> str:
        return f"{self.half_life // timedelta(seconds=1)}#{self.number}"

    @property
    def begin(self) -> datetime:
        return _EPOCH + self.number * HALF_LIVES * self.half_life

    def is_long_after(self, other: "UsePeriod") -> bool:
        """Tell whether the other is one of ``earlier``."""
        back = self.number - other.number - PERIODS_READ
        return self.half_life == other.half_life and 0 <= back < PERIODS_CLEARED

    def earlier(self) -> "Iterator[UsePeriod]":
        """Yield the periods of which nothing is left to count."""
        for back in range(PERIODS_READ, PERIODS_READ + PERIODS_CLEARED):
            yield UsePeriod(half_life=self.half_life, number=self.number - back)


UseSums: TypeAlias = Mapping[UsePeriod, int]
"""Use by one team in one pool: instance-milliseconds as of the beginning of each period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Instances held from one instant to another."""

    instances: int
    since: datetime
    until: datetime

    def hours(self, half_life: timedelta, *, now: datetime) -> float:
        """Return the instance-hours as they count now: the integral of what decays."""
        if self.until <= self.since:
            return 0.0
        # An hour held at t counts 2 ** -((now - t) / half_life) now. The integral from since to until is
        # half_life / ln 2 * left * decay(until); expm1 keeps short holdings exact.
        left = -math.expm1(-math.log(2) * ((self.until - self.since) / half_life))
        return (
            self.instances * (half_life / _HOUR) / math.log(2) * left * decay(self.until, half_life, now=now)
        )


def decay(at: datetime, half_life: timedelta, *, now: datetime) -> float:
    """Return what an hour at an instant counts now; more than 1 where ``now`` is before it.

    Args:
        at: The instant of the use.
        half_life: Time in which use loses half of its value.
        now: The instant it is counted at.
    """
    return math.exp2(-((now - at) / half_life))


def noted(attempt: Attempt, *, at: datetime) -> tuple[UsePeriod, int]:
    """Return what the end of an attempt adds to its team's sums: in which period, and how much.

    Its instances were the team's from its claim to its end, whatever they did meanwhile.

    Args:
        attempt: An attempt that is over.
        at: Instant of the write, which decides the period, so that one commit adds to one period.
    """
    half_life = attempt.claim.half_life or HALF_LIFE
    period = UsePeriod.at(at, half_life)
    held = Holding(
        instances=sum(attempt.vector.values()), since=attempt.claim.at, until=attempt.ended_at or at
    )
    return period, round(held.hours(half_life, now=period.begin) * (_HOUR / _UNIT))


def added(sums: UseSums, attempt: Attempt, *, at: datetime) -> UseSums:
    """Return the sums after an end, as the table adds them up."""
    period, amount = noted(attempt, at=at)
    kept = {earlier: count for earlier, count in sums.items() if not period.is_long_after(earlier)}
    return kept | {period: kept.get(period, 0) + amount}


def hours_of(sums: UseSums, half_life: timedelta, *, now: datetime) -> float:
    """Return the instance-hours as they count now.

    Use under another half-life keeps to that, and counts in proportion: as from a team that always used as
    much.
    """
    return sum(
        count
        * (_UNIT / _HOUR)
        * decay(period.begin, period.half_life, now=now)
        * (half_life / period.half_life)
        for period, count in sums.items()
    )
