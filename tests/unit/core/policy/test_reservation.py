"""Reservations of the policy document: what they mean over time, and every way in which they mean nothing."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.calendar_changes import capacity_changes
from trainmaster.core.policy.reservation import Reservation, reserved_at, with_reserved
from trainmaster.services.calendars import at_instant, refuse_overbooked

P5 = "ml.p5.48xlarge"
G5 = "ml.g5.12xlarge"
NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
DEMO = {
    "name": "demo-day",
    "team": "vision",
    "from": "2026-12-01T08:00Z",
    "to": "2026-12-01T20:00Z",
    "instances": {P5: 1},
}


def document(*reservations: object, **pool: Any) -> dict[str, Any]:
    keys = {"name": "p5", "capacity": {P5: 2, G5: 4}, "reservations": list(reservations)} | pool
    teams = [{"name": name, "roles": "any"} for name in ("vision", "language")]
    return {"pools": [keys], "teams": teams}


def put(written: dict[str, Any], now: datetime = NOW) -> Policy:
    """Read a policy as a put of it does."""
    policy = at_instant(parse_policy(written), now)
    refuse_overbooked(policy, now)
    return policy


def errors_of(written: dict[str, Any], now: datetime = NOW) -> tuple[FieldError, ...]:
    with pytest.raises(PolicyViolationError) as caught:
        put(written, now)
    return caught.value.errors


def steps(policy: Policy) -> list[tuple[str, int, dict[str, Any]]]:
    """The counts of p5 and what is reserved, now and from each instant of a change on."""
    (pool,) = policy.pools
    now = ("now", pool.capacity[P5], dict(pool.reserved))
    return [
        now,
        *((f"{c.at:%d. %H:%M}", c.capacity[P5], dict(c.reserved)) for c in pool.ahead),
    ]


def test_a_reservation_holds_from_its_first_instant_until_before_its_last() -> None:
    assert steps(put(document(DEMO))) == [
        ("now", 2, {}),
        ("01. 08:00", 2, {"vision": {P5: 1}}),
        ("01. 20:00", 2, {}),
    ]
    during = put(document(DEMO), datetime(2026, 12, 1, 8, 0, tzinfo=UTC))
    assert steps(during) == [("now", 2, {"vision": {P5: 1}}), ("01. 20:00", 2, {})]
    assert steps(put(document(DEMO), datetime(2026, 12, 1, 20, 0, tzinfo=UTC))) == [("now", 2, {})]


def test_reservations_add_up_and_change_with_the_calendar() -> None:
    second = DEMO | {"name": "late", "from": "2026-12-01T19:00Z", "to": "2026-12-02T00:00Z"}
    other = DEMO | {"name": "exam", "team": "language", "instances": {G5: 3}}
    calendar = [{"every": "Tue 12:00-21:00", "capacity": {P5: 2, G5: 3}}]
    found = steps(put(document(DEMO, second, other, calendar=calendar, capacity={P5: 4, G5: 4})))[:7]
    both = {"vision": {P5: 1}, "language": {G5: 3}}
    assert found == [
        ("now", 4, {}),
        ("01. 08:00", 4, both),
        ("01. 12:00", 2, both),
        ("01. 19:00", 2, {"vision": {P5: 2}, "language": {G5: 3}}),
        ("01. 20:00", 2, {"vision": {P5: 1}}),
        ("01. 21:00", 4, {"vision": {P5: 1}}),
        ("02. 00:00", 4, {}),
    ]


def test_Q6_instants_in_the_hours_of_a_change_of_clocks_and_on_a_leap_day() -> None:
    """Both have a zone, so the same hour of the clock twice, and a skipped one, are instants like any."""
    autumn = DEMO | {"from": "2026-10-25T02:30+02:00", "to": "2026-10-25T02:30+01:00"}
    assert steps(put(document(autumn), datetime(2026, 10, 20, tzinfo=UTC))) == [
        ("now", 2, {}),
        ("25. 00:30", 2, {"vision": {P5: 1}}),
        ("25. 01:30", 2, {}),
    ]
    leap = DEMO | {"from": "2028-02-29T00:00-05:00", "to": "2028-03-01T00:00-05:00"}
    assert [at for at, *_ in steps(put(document(leap), datetime(2028, 2, 20, tzinfo=UTC)))] == [
        "now",
        "29. 05:00",
        "01. 05:00",
    ]


def test_Q7_more_than_the_pool_has_at_an_instant_of_it_is_refused_with_the_instants() -> None:
    (error,) = errors_of(document(DEMO | {"instances": {P5: 3}}))
    assert error.field == f"pools[0].reservations[0].instances.{P5}"
    assert error.message == "reserves 3, the pool has 2 from 2026-12-01T08:00Z to 2026-12-01T20:00Z"
    assert error.hint == "write at most 2, choose other instants, or raise the capacity"


def test_Q7_a_reservation_over_a_time_in_which_the_calendar_has_less_is_refused() -> None:
    """Berlin's clocks go back on 25 October, so its Sunday ends at 23:00 UTC and not at 22:00."""
    sunday = [{"every": "Sun", "timezone": "Europe/Berlin", "capacity": {P5: 0}}]
    over = DEMO | {"from": "2026-10-24T00:00Z", "to": "2026-10-27T00:00Z"}
    (error,) = errors_of(document(over, calendar=sunday), datetime(2026, 10, 20, tzinfo=UTC))
    assert error.message == "reserves 1, the pool has 0 from 2026-10-24T22:00Z to 2026-10-25T23:00Z"
    assert error.hint.startswith("remove it")
    between = DEMO | {"from": "2026-10-25T23:00Z", "to": "2026-10-31T23:00Z"}
    put(document(between, calendar=sunday), datetime(2026, 10, 20, tzinfo=UTC))


def test_Q7_months_ahead_a_single_night_with_less_is_found() -> None:
    night = [{"from": "2027-06-01T00:00Z", "to": "2027-06-01T01:00Z", "capacity": {P5: 0}}]
    year = DEMO | {"from": "2026-12-01T00:00Z", "to": "2027-12-01T00:00Z"}
    (error,) = errors_of(document(year, calendar=night))
    assert "the pool has 0 from 2027-06-01T00:00Z to 2027-06-01T01:00Z" in error.message


def test_Q7_two_that_overlap_above_the_capacity_are_refused_and_both_named() -> None:
    late = DEMO | {"name": "late", "team": "language", "from": "2026-12-01T19:00Z", "to": "2026-12-02T00:00Z"}
    (error,) = errors_of(document(DEMO, late | {"instances": {P5: 2}}))
    assert error.field == f"pools[0].reservations[1].instances.{P5}"
    assert error.message == (
        "reserves 3 with demo-day, the pool has 2 from 2026-12-01T19:00Z to 2026-12-01T20:00Z"
    )
    assert error.hint.startswith("write at most 1,")
    put(document(DEMO, late))
    put(document(DEMO, late | {"from": "2026-12-01T20:00Z", "instances": {P5: 2}}))


def test_what_was_too_much_in_the_past_is_refused_no_more() -> None:
    put(document(DEMO | {"instances": {P5: 3}}), datetime(2026, 12, 2, tzinfo=UTC))


def test_Q7_a_team_that_is_gone_is_refused_with_the_instants() -> None:
    (error,) = errors_of(document(DEMO | {"team": "visoin"}))
    assert error.field == "pools[0].reservations[0].team"
    assert error.message == (
        'there is no team "visoin": its instances would stand idle'
        " from 2026-12-01T08:00Z to 2026-12-01T20:00Z"
    )
    assert "vision" in error.hint
    without = document(DEMO) | {"teams": []}
    assert [error.field for error in errors_of(without)] == ["pools[0].reservations[0].team"]
    everybody = document(DEMO | {"team": "default"}) | {"teams": []}
    assert put(everybody).pools[0].reservations[0].team == "default"


@pytest.mark.parametrize(
    ("changes", "field", "message", "hint"),
    [
        pytest.param(
            {"to": "2026-12-01T08:00Z"},
            "to",
            "is not after from: 2026-12-01T08:00Z",
            "write an instant after 2026-12-01T08:00Z",
            id="an end that is its beginning",
        ),
        pytest.param({"from": "2026-12-01T08:00"}, "from", "has no zone", "Z", id="no zone"),
        pytest.param({"to": "tomorrow"}, "to", "is not an instant", "2026-12-24T00:00Z", id="a word"),
        pytest.param({"from": "2027-02-29T00:00Z"}, "from", "is not an instant", "", id="no leap year"),
        pytest.param({"to": "2028-12-01T20:00Z"}, "to", "is more than 366 days", "2027-12-02", id="too long"),
        pytest.param({"to": "9999-12-31T23:59Z"}, "to", "is too far off", "zone", id="the end of time"),
        pytest.param({"instances": {}}, "instances", "is empty", "{ml.p5.48xlarge: 1}", id="nothing"),
        pytest.param(
            {"instances": {P5: 0}},
            f"instances.{P5}",
            "must be a whole number, 1",
            "1 to",
            id="none of a type",
        ),
        pytest.param(
            {"instances": {"ml.g6.xlarge": 1}},
            "instances.ml.g6.xlarge",
            "is not in the capacity of the pool",
            "g5",
            id="a type of another pool",
        ),
        pytest.param({"name": "No name"}, "name", "", "", id="a name"),
    ],
)
def test_what_says_nothing_is_refused_by_field(
    changes: dict[str, Any], field: str, message: str, hint: str
) -> None:
    (error,) = errors_of(document(DEMO | changes))
    assert error.field == f"pools[0].reservations[0].{field}"
    assert error.message.startswith(message)
    assert hint in error.hint


@pytest.mark.parametrize("missing", ["name", "team", "from", "to", "instances"])
def test_every_key_is_needed(missing: str) -> None:
    (error,) = errors_of(document({name: value for name, value in DEMO.items() if name != missing}))
    assert (error.field, error.message) == (f"pools[0].reservations[0].{missing}", "is missing")


def test_names_are_unique_in_a_pool_and_their_number_is_bounded() -> None:
    (error,) = errors_of(document(DEMO, DEMO))
    assert error.field == "pools[0].reservations[1].name"
    many = errors_of(document(*(DEMO | {"name": f"r{number}"} for number in range(51))))
    assert ("pools[0].reservations", "has 51 reservations") in {(each.field, each.message) for each in many}


def test_more_than_the_teams_quota_lets_it_use_is_a_warning() -> None:
    quotas = {"vision": {"nominal": {P5: 1}, "borrowing_limit": {P5: 0}}, "language": {"nominal": {P5: 0}}}
    found = put(document(DEMO | {"instances": {P5: 2}}, quotas=quotas)).warnings
    assert [(each.field, each.message) for each in found] == [
        (
            f"pools[0].reservations[0].instances.{P5}",
            "is more than team vision may use: its quota and borrowing limit are 1",
        )
    ]
    for fine in (DEMO, DEMO | {"team": "language", "instances": {P5: 2}}):
        assert put(document(fine, quotas=quotas)).warnings == ()


def test_a_stored_policy_is_read_although_it_reserves_too_much() -> None:
    stored = parse_policy(document(DEMO | {"instances": {P5: 3}}), is_stored=True)
    assert steps(at_instant(stored, NOW))[1] == ("01. 08:00", 2, {"vision": {P5: 3}})


def test_whatever_is_reserved_each_minute_has_what_is_written() -> None:
    chance = Random(11)
    for round_ in range(60):
        begin = datetime(2026, 3, 28, tzinfo=UTC) + timedelta(hours=chance.randrange(24 * 300))
        until = begin + timedelta(days=2)
        written = [_drawn(chance, begin, number) for number in range(chance.randint(1, 4))]
        entry = {"every": "daily 07:00-19:30", "timezone": "America/New_York", "capacity": {P5: 6}}
        (pool,) = parse_policy(document(*written, calendar=[entry])).pools
        by_calendar = capacity_changes(
            pool.capacity, pool.calendar, since=begin, until=until, zone_of=ZoneInfo
        )
        found = with_reserved(by_calendar, pool.reservations, until=until)
        assert [change.at for change in found] == sorted({change.at for change in found})
        for minute in range(0, 2 * 24 * 60, 7):
            now = begin + timedelta(minutes=minute)
            (in_force, *_) = [change for change in reversed(found) if change.at <= now]
            assert in_force.reserved == _expected(pool.reservations, now), (round_, written, now)
            assert in_force.capacity == _in_force(by_calendar, now).capacity, (round_, now)


def _drawn(chance: Random, begin: datetime, number: int) -> dict[str, Any]:
    first = begin + timedelta(minutes=chance.randint(-900, 2000))
    last = first + timedelta(minutes=chance.randint(1, 2000))
    team = chance.choice(["vision", "language"])
    instances = {chance.choice([P5, G5]): chance.randint(1, 3)}
    instants = {"from": first.isoformat(), "to": last.isoformat()}
    return {"name": f"r{number}", "team": team, "instances": instances} | instants


def _in_force(changes: tuple[CapacityFrom, ...], now: datetime) -> CapacityFrom:
    return [change for change in changes if change.at <= now][-1]


def _expected(reservations: tuple[Reservation, ...], now: datetime) -> dict[str, dict[str, int]]:
    """By the definition: the sum over those that have begun and not ended."""
    sums: dict[str, dict[str, int]] = {}
    for each in reservations:
        if each.from_ <= now < each.to:
            for name, count in each.instances.items():
                sums.setdefault(each.team, {}).setdefault(name, 0)
                sums[each.team][name] += count
    assert reserved_at(reservations, now) == sums
    return sums
