"""The instants at which a pool's calendar changes its capacity.

Zones come from the caller, as their rules are files: core reads none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from trainmaster.core.policy.calendar import CalendarEntry, CapacityFrom, WeeklyTime, WhenLowered

ZoneOf = Callable[[str], tzinfo]
"""Returns the zone of a name of the IANA database; raises KeyError if there is none."""
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The time in which an entry holds; ``number`` is its place in the calendar."""

    begin: datetime
    end: datetime
    number: int


def capacity_changes(
    base: Mapping[str, int],
    calendar: Sequence[CalendarEntry],
    *,
    since: datetime,
    until: datetime,
    zone_of: ZoneOf,
) -> tuple[CapacityFrom, ...]:
    """Return the capacity at ``since`` and each change of it before ``until``, in order.

    Args:
        base: Instances by type where no entry holds.
        calendar: Entries; of two that hold at once the later in the list decides.
        since: The first instant of interest; the first item of the result has it.
        until: The instant after the last.
        zone_of: Finds the zones of weekly entries.
    """
    spans = [
        span
        for number, entry in enumerate(calendar)
        for span in _spans(entry, number, since=since, until=until, zone_of=zone_of)
    ]
    inside = {instant for span in spans for instant in (span.begin, span.end) if since < instant < until}
    changes: list[CapacityFrom] = []
    before, stops = dict(base), frozenset[str]()
    for instant in (since, *sorted(inside)):
        holding = {span.number for span in spans if span.begin <= instant < span.end}
        capacity = dict(base)
        for number in sorted(holding):
            capacity |= calendar[number].capacity
        ended = {span.number for span in spans if span.end == instant}
        concerned = [calendar[number] for number in sorted(holding | ended)]
        stops = frozenset(_stops(before, capacity, stops, concerned))
        if capacity != before or not changes:
            changes.append(CapacityFrom(at=instant, capacity=capacity, stops=stops))
        before = capacity
    return tuple(changes)


def _stops(
    before: Mapping[str, int],
    after: Mapping[str, int],
    stops: frozenset[str],
    concerned: Sequence[CalendarEntry],
) -> Iterator[str]:
    """Yield the types whose jobs above ``after`` are stopped: the last entry that lowered each decides."""
    for instance_type, count in after.items():
        if count < before.get(instance_type, 0):
            modes = [entry.when_lowered for entry in concerned if instance_type in entry.capacity]
            if modes and modes[-1] is WhenLowered.PREEMPT:
                yield instance_type
        elif count == before.get(instance_type, 0) and instance_type in stops:
            yield instance_type


def _spans(
    entry: CalendarEntry, number: int, *, since: datetime, until: datetime, zone_of: ZoneOf
) -> Iterator[_Span]:
    """Yield the times in which an entry holds that touch the period."""
    if entry.every is None:
        assert entry.from_ is not None, entry
        assert entry.to is not None, entry
        yield _Span(begin=entry.from_, end=entry.to, number=number)
        return
    zone = zone_of(entry.timezone)
    for begin, end in _weekly(entry.every, zone, since=since, until=until):
        if begin < end:  # a span that lies in the hour that the clocks skip is empty
            yield _Span(begin=begin, end=end, number=number)


def _weekly(
    every: WeeklyTime, zone: tzinfo, *, since: datetime, until: datetime
) -> Iterator[tuple[datetime, datetime]]:
    day = since.astimezone(zone).date() - 2 * _DAY  # one that began before may still hold
    while day <= until.astimezone(zone).date():
        if day.weekday() in every.days:
            midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  the clock on the wall
            begin, end = instant_of(midnight + every.begin, zone), instant_of(midnight + every.end, zone)
            yield begin, end
        day += _DAY


def instant_of(local: datetime, zone: tzinfo) -> datetime:
    """Return the instant (UTC) at which the clocks of a zone show a time.

    A time that they show twice is the first of both; for one that they skip it is the instant of the change.
    """
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    # The skipped hour: the change lies between the instants by the offsets after and before it.
    early = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    late, offset = first, early.astimezone(zone).utcoffset()
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)
