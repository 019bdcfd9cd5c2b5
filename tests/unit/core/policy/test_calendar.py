"""Calendars of the policy document: what they mean, and every way in which they mean nothing."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.calendar import CalendarEntry, CapacityFrom
from trainmaster.core.policy.calendar_changes import capacity_changes, instant_of

P5 = "ml.p5.48xlarge"
G5 = "ml.g5.12xlarge"
OFFICE = {"every": "Mon-Fri 08:00-18:00", "timezone": "Europe/Berlin", "capacity": {P5: 1}}
FEAST = {"from": "2026-12-24T00:00Z", "to": "2026-12-27T00:00Z", "capacity": {P5: 0}}


def document(*entries: object, **pool: Any) -> dict[str, Any]:
    keys: dict[str, Any] = {"name": "p5", "capacity": {P5: 2, G5: 4}, "calendar": list(entries)} | pool
    return {"pools": [keys], "teams": [{"name": "vision", "roles": "any"}]}


def calendar(*entries: object) -> tuple[CalendarEntry, ...]:
    return parse_policy(document(*entries)).pools[0].calendar


def errors_of(written: object) -> tuple[FieldError, ...]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(written)
    return caught.value.errors


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def changes(*entries: object, since: str, until: str) -> list[tuple[str, int]]:
    """The counts of p5 from each instant of a change on."""
    found = capacity_changes(
        {P5: 2, G5: 4}, calendar(*entries), since=at(since), until=at(until), zone_of=ZoneInfo
    )
    return [(change.at.strftime("%d. %H:%M"), change.capacity[P5]) for change in found]


def test_a_weekly_entry_holds_by_the_clock_on_the_wall() -> None:
    found = changes(OFFICE, since="2026-11-27T00:00Z", until="2026-12-01T00:00Z")
    assert found == [
        ("27. 00:00", 2),
        ("27. 07:00", 1),
        ("27. 17:00", 2),
        ("30. 07:00", 1),
        ("30. 17:00", 2),
    ], "a Friday, a weekend and a Monday in winter"


def test_the_later_entry_in_the_list_wins_and_what_it_does_not_name_stays() -> None:
    assert changes(OFFICE, FEAST, since="2026-12-23T12:00Z", until="2026-12-29T00:00Z") == [
        ("23. 12:00", 1),
        ("23. 17:00", 2),
        ("24. 00:00", 0),
        ("27. 00:00", 2),
        ("28. 07:00", 1),
        ("28. 17:00", 2),
    ]
    first = capacity_changes(
        {P5: 2, G5: 4},
        calendar(FEAST),
        since=at("2026-12-25T00:00Z"),
        until=at("2026-12-26T00:00Z"),
        zone_of=ZoneInfo,
    )
    in_force = CapacityFrom(at=at("2026-12-25T00:00Z"), capacity={P5: 0, G5: 4}, stops=frozenset({P5}))
    assert first == (in_force,)


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        pytest.param(
            "daily 22:00-06:00",
            [("06. 00:00", 0), ("06. 06:00", 2), ("06. 22:00", 0), ("07. 06:00", 2), ("07. 22:00", 0)],
            id="over midnight",
        ),
        pytest.param("Sat,Sun", [("06. 00:00", 0)], id="whole days that touch"),
        pytest.param("Fri-Mon 23:00-24:00", [("06. 00:00", 2), ("06. 23:00", 0)], id="to midnight"),
        pytest.param(
            "Sun-Mon 10:00-11:00", [("06. 00:00", 2), ("06. 10:00", 0), ("06. 11:00", 2)], id="over the week"
        ),
        pytest.param("Mon,Wed-Fri 10:00-11:00", [("06. 00:00", 2)], id="other days"),
    ],
)
def test_days_and_times_of_a_week(every: str, expected: list[tuple[str, int]]) -> None:
    entry = {"every": every, "capacity": {P5: 0}}
    until = "2026-12-08T00:00Z" if every.startswith("daily") else "2026-12-07T00:00Z"
    found = changes(entry, since="2026-12-06T00:00Z", until=until)  # a Sunday
    assert found[: len(expected)] == expected


@pytest.mark.parametrize(
    ("local", "instant"),
    [
        pytest.param("2026-03-29T02:30", "2026-03-29T01:00Z", id="skipped: the next that there is"),
        pytest.param("2026-03-29T02:00", "2026-03-29T01:00Z", id="the first skipped minute"),
        pytest.param("2026-03-29T03:00", "2026-03-29T01:00Z", id="the first after it"),
        pytest.param("2026-10-25T02:30", "2026-10-25T00:30Z", id="twice: the first"),
        pytest.param("2026-10-25T03:00", "2026-10-25T02:00Z", id="after both"),
        pytest.param("2024-02-29T12:00", "2024-02-29T11:00Z", id="a leap day"),
    ],
)
def test_Q6_a_time_of_day_when_the_clocks_change(local: str, instant: str) -> None:
    assert instant_of(datetime.fromisoformat(local), ZoneInfo("Europe/Berlin")) == at(instant)


def test_Q6_a_calendar_over_both_changes_of_clocks_and_a_leap_day() -> None:
    night = {"every": "daily 02:30-03:30", "timezone": "Europe/Berlin", "capacity": {P5: 0}}
    assert changes(night, since="2026-03-28T22:00Z", until="2026-03-29T22:00Z") == [
        ("28. 22:00", 2),
        ("29. 01:00", 0),
        ("29. 01:30", 2),
    ], "half an hour: the clocks skip the rest"
    assert changes(night, since="2026-10-24T22:00Z", until="2026-10-25T22:00Z") == [
        ("24. 22:00", 2),
        ("25. 00:30", 0),
        ("25. 02:30", 2),
    ], "two hours: the clocks show 02:30 twice"
    leap = {"every": "Thu", "timezone": "Europe/Berlin", "capacity": {P5: 0}}
    assert changes(leap, since="2024-02-28T12:00Z", until="2024-03-02T00:00Z") == [
        ("28. 12:00", 2),
        ("28. 23:00", 0),
        ("29. 23:00", 2),
    ]


def test_whatever_the_calendar_each_minute_has_what_its_entries_say() -> None:
    chance = Random(7)
    zones = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
    for round_ in range(60):
        begin = at("2026-03-20T00:00Z") + timedelta(hours=chance.randrange(24 * 365))
        end = begin + timedelta(days=2)
        entries = [_drawn(chance, zones, begin) for _ in range(chance.randint(1, 4))]
        read = calendar(*entries)
        found = capacity_changes({P5: 2, G5: 4}, read, since=begin, until=end, zone_of=ZoneInfo)
        for minute in range(0, 2 * 24 * 60, 7):
            now = begin + timedelta(minutes=minute)
            expected = {P5: 2, G5: 4}
            for entry in read:
                if _holds(entry, now):
                    expected |= entry.capacity
            (in_force, *_) = [change for change in reversed(found) if change.at <= now]
            assert in_force.capacity == expected, (round_, entries, now)


def _drawn(chance: Random, zones: list[str], begin: datetime) -> dict[str, Any]:
    capacity = {chance.choice([P5, G5]): chance.randint(0, 5)}
    if chance.random() < 0.4:
        first = begin + timedelta(minutes=chance.randint(-900, 2000))
        last = first + timedelta(minutes=chance.randint(1, 2000))
        return {"from": first.isoformat(), "to": last.isoformat(), "capacity": capacity}
    hours = sorted(chance.sample(range(24), 2), reverse=chance.random() < 0.3)
    days = chance.choice(["daily", "Mon-Fri", "Sat,Sun", "Fri-Mon"])
    every = f"{days} {hours[0]:02}:00-{hours[1]:02}:30"
    return {"every": every, "timezone": chance.choice(zones), "capacity": capacity}


def _holds(entry: CalendarEntry, now: datetime) -> bool:
    """By the definition: from its begin on the clock on the wall until its end there."""
    if entry.every is None:
        assert entry.from_ is not None
        assert entry.to is not None
        return entry.from_ <= now < entry.to
    zone = ZoneInfo(entry.timezone)
    today = now.astimezone(zone).date()
    for day in (today - timedelta(days=1), today, today + timedelta(days=1)):
        midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001
        spans = instant_of(midnight + entry.every.begin, zone), instant_of(midnight + entry.every.end, zone)
        if day.weekday() in entry.every.days and spans[0] <= now < spans[1]:
            return True
    return False


def stops(*entries: object, since: str, until: str) -> list[tuple[int, list[str]]]:
    found = capacity_changes({P5: 2}, calendar(*entries), since=at(since), until=at(until), zone_of=ZoneInfo)
    return [(change.capacity[P5], sorted(change.stops)) for change in found]


def test_what_becomes_of_jobs_above_it_is_said_by_the_entry_that_lowers() -> None:
    entries = OFFICE | {"when_lowered": "wait"}, FEAST
    assert stops(*entries, since="2026-12-23T20:00Z", until="2026-12-29T00:00Z") == [
        (2, []),
        (0, [P5]),
        (2, []),
        (1, []),
        (2, []),
    ]
    raised = {"every": "Fri 08:00-18:00", "capacity": {P5: 5}}
    assert stops(raised, since="2026-11-27T12:00Z", until="2026-11-28T00:00Z") == [(5, []), (2, [P5])], (
        "the end of an entry that raised it is a lowering, too"
    )


def test_jobs_above_a_lowered_capacity_are_stopped_as_long_as_it_holds() -> None:
    other = {"every": "Fri 13:00-14:00", "capacity": {G5: 1}}
    found = capacity_changes(
        {P5: 2, G5: 4},
        calendar({"every": "Fri 12:00-18:00", "capacity": {P5: 1}}, other),
        since=at("2026-11-27T00:00Z"),
        until=at("2026-11-28T00:00Z"),
        zone_of=ZoneInfo,
    )
    assert [sorted(change.stops) for change in found] == [[], [P5], [G5, P5], [P5], []]


@pytest.mark.parametrize(
    ("entry", "field", "message", "hint"),
    [
        pytest.param(
            {"every": "Mon-Fri 25:00-26:00"}, "every", "is not a time of the week", "e.g.", id="hour"
        ),
        pytest.param(
            {"every": "Mo-Fr 08:00-18:00"}, "every", "is not a time of the week", "Mon-Fri", id="day"
        ),
        pytest.param({"every": "Mon 08:00"}, "every", "is not a time", "08:00-18:00", id="no end"),
        pytest.param({"every": "Mon 08:00-08:00"}, "every", "is not a time", "e.g.", id="no time at all"),
        pytest.param(
            {"every": "Mon", "timezone": "Mars Base"}, "timezone", "is not a time zone", "IANA", id="zone"
        ),
        pytest.param({}, "", "has no time", "write every", id="no time"),
        pytest.param(
            {"every": "Mon", "from": "2026-12-24T00:00Z"},
            "",
            "has every, and from or to",
            "write every, or",
            id="both",
        ),
        pytest.param({"from": "2026-12-24T00:00Z"}, "", "has no time", "from and to", id="no to"),
        pytest.param(
            {"from": "2026-12-24T00:00", "to": "2026-12-25T00:00Z"},
            "from",
            "has no zone",
            "write 2026-12-24T00:00Z",
            id="no zone",
        ),
        pytest.param(
            {"from": "2026-12-24T00:00Z", "to": "2026-12-23T00:00Z"},
            "to",
            "is not after from",
            "2026-12-24T00:00Z",
            id="Q6 an end before its beginning",
        ),
        pytest.param(
            {"from": "2026-02-29T00:00Z", "to": "2026-12-23T00:00Z"},
            "from",
            "is not an instant",
            "write one like",
            id="a day that there is not",
        ),
        pytest.param(
            {"from": "0001-01-01T00:00+14:00", "to": "2026-12-23T00:00Z"},
            "from",
            "is not an instant",
            "write one like",
            id="before all calendars",
        ),
        pytest.param(
            {"from": 20261224, "to": "2026-12-23T00:00Z"}, "from", "is not an instant", "like", id="number"
        ),
        pytest.param(
            {"every": "Mon", "when_lowered": "stop"},
            "when_lowered",
            "must be preempt or wait",
            "",
            id="a word",
        ),
    ],
)
def test_Q6_an_entry_that_says_nothing_is_refused_by_field(
    entry: dict[str, Any], field: str, message: str, hint: str
) -> None:
    (error,) = errors_of(document(entry | {"capacity": {P5: 1}}))
    assert error.field == f"pools[0].calendar[0]{'.' if field else ''}{field}"
    assert error.message.startswith(message)
    assert hint in error.hint


def test_types_of_another_pool_and_too_many_entries_are_refused() -> None:
    (error,) = errors_of(document({"every": "Mon", "capacity": {"ml.g6.xlarge": 1}}))
    assert error.field == "pools[0].calendar[0].capacity.ml.g6.xlarge"
    assert error.message == "is not in the capacity of the pool"
    (many,) = errors_of(document(*[OFFICE] * 51))
    assert (many.field, many.message) == ("pools[0].calendar", "has 51 entries")
