"""Entries of a pool's calendar: other capacities at times of the week, or between two instants."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.keys import Section, key, needed, optional
from trainmaster.core.policy.kinds import Text, Word, plain_text
from trainmaster.core.policy.names import COUNTS

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""Names of the days of the week; their places are those of ``datetime.weekday``."""
MOST_ENTRIES = 50
"""Entries that a calendar may have: each pass looks at all of them."""
_DAY = timedelta(days=1)
_DAY_RANGE = "[A-Z][a-z]{2}(?:-[A-Z][a-z]{2})?"
_WEEKLY = re.compile(
    rf"(daily|{_DAY_RANGE}(?:,{_DAY_RANGE})*)(?: ([0-9]{{2}}:[0-5][0-9])-([0-9]{{2}}:[0-5][0-9]))?"
)
_WEEKLY_HINT = 'write days and times, e.g. "Mon-Fri 08:00-18:00", "Sat,Sun" or "daily 22:00-06:00"'
_INSTANT_HINT = "write one like 2026-12-24T00:00Z"
_LOCAL = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
INSTANT = rf"{_LOCAL}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyTime:
    """A time of the week, by the clock on the wall."""

    days: frozenset[int]
    """Days on which it begins, 0 for Monday."""
    begin: timedelta
    """Time of day at which it begins."""
    end: timedelta
    """Time of day at which it ends: over 24 hours where that is on the day after."""


class WhenLowered(StrEnum):
    """Choices for what runs above a capacity that the calendar lowers."""

    PREEMPT = "preempt"
    WAIT = "wait"


def _weekly_time(text: str) -> WeeklyTime | None:
    """Read days, and times between them; None if the text names no days and times."""
    match = _WEEKLY.fullmatch(text)
    days = _days(match[1]) if match else None
    if match is None or days is None:
        return None
    if match[2] is None:
        return WeeklyTime(days=days, begin=timedelta(), end=_DAY)
    begin, end = _time_of_day(match[2]), _time_of_day(match[3])
    if begin is None or end is None or begin in (_DAY, end):
        return None
    return WeeklyTime(days=days, begin=begin, end=end if end > begin else end + _DAY)


def _days(text: str) -> frozenset[int] | None:
    if text == "daily":
        return frozenset(range(len(DAYS)))
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            return None
        begin, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % len(DAYS) for day in range(begin, end + 1 if end >= begin else end + 1 + len(DAYS))}
    return frozenset(days)


def _time_of_day(text: str) -> timedelta | None:
    time = timedelta(hours=int(text[:2]), minutes=int(text[3:]))
    return time if time <= _DAY else None


@dataclass(frozen=True, slots=True)
class Instant:
    """The kind of value that is an instant: ISO 8601 with a zone."""

    shape: str = INSTANT
    """Regular expression of it, for editors."""

    def read(self, written: object, at: Location) -> datetime | None:
        try:
            instant = datetime.fromisoformat(written) if isinstance(written, str) else None
            if instant is not None and instant.tzinfo is not None:
                return instant.astimezone(UTC)
        except (ValueError, OverflowError):
            instant = None
        if instant is not None and isinstance(written, str) and re.fullmatch(_LOCAL, written):
            at.refuse(
                f"has no zone: {shown(written)}", f"write {written}Z, or its offset, e.g. {written}+01:00"
            )
        else:
            at.refuse(f"is not an instant: {shown(written)}", _INSTANT_HINT)
        return None


EVERY = Text(
    shape=_WEEKLY.pattern, parse=_weekly_time, refusal="is not a time of the week", hint=_WEEKLY_HINT
)
TIMEZONE = plain_text(
    r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}",
    "is not a time zone",
    "write a name of the IANA database, e.g. Europe/Berlin",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityFrom:
    """The on-demand capacity of a pool from an instant on."""

    at: datetime
    capacity: Mapping[str, int]
    """Instances by type."""
    stops: frozenset[str] = frozenset()
    """Types that the calendar has lowered, and whose jobs above the capacity are stopped."""
    reserved: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Instances of ``capacity`` that are a team's alone, by team and type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEntry(Section):
    """Another capacity, either at a time of each week or between two instants."""

    every: WeeklyTime | None = optional(
        EVERY,
        "The time of the week in which it holds, by the clock of `timezone`.",
        example='"Mon-Fri 08:00-18:00"',
    )
    timezone: str = key(TIMEZONE, "UTC", "The zone of the times in `every`.", example="Europe/Berlin")
    from_: datetime | None = optional(
        Instant(),
        "The instant from which it holds, where `every` is not written.",
        example="2026-12-24T00:00Z",
    )
    to: datetime | None = optional(
        Instant(), "The instant until which it holds.", example="2026-12-27T00:00Z"
    )
    capacity: Mapping[str, int] = needed(
        COUNTS,
        "On-demand instances by type in this time; a type left out keeps what it has.",
        stand_in={},
        hint="write capacity: {TYPE: COUNT}",
    )
    when_lowered: WhenLowered = key(
        Word(WhenLowered),
        "preempt",
        "What runs above the capacity when this lowers it: `preempt` stops it, `wait` lets it end.",
    )

    def check(self, at: Location) -> None:
        if not at.is_sound("every", "from", "to"):
            return
        if self.every is not None and (self.from_ or self.to):
            at.refuse("has every, and from or to", "write every, or from and to")
        elif self.every is None and not (self.from_ and self.to):
            at.refuse("has no time", 'write every, e.g. "Mon-Fri 08:00-18:00", or from and to')
        elif self.from_ and self.to and self.to <= self.from_:
            at.below("to").refuse("is not after from", f"write an instant after {instant_text(self.from_)}")
        elif self.every is None and self.timezone != "UTC":
            at.below("timezone").refuse("has no effect: from and to have zones of their own", "remove it")


def check_calendar(calendar: Sequence[CalendarEntry], capacity: Mapping[str, int], pool: Location) -> None:
    """Refuse more entries than a pass can look at, and types that the pool's own capacity does not name."""
    at = pool.below("calendar")
    if len(calendar) > MOST_ENTRIES:
        at.refuse(f"has {len(calendar)} entries", f"write at most {MOST_ENTRIES}")
    for index, entry in enumerate(calendar if pool.is_sound("capacity") else ()):
        for instance_type in entry.capacity:
            if instance_type not in capacity:
                hint = "write it in the pool's capacity too, 0 if it has none else"
                place = at.item(index).below("capacity").below(instance_type)
                place.refuse("is not in the capacity of the pool", nearest(instance_type, capacity) or hint)


def instant_text(instant: datetime) -> str:
    """Write an instant as an author would."""
    return instant.astimezone(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
