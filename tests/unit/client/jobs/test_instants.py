"""Times as people write and read them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from trainmaster.core.jobs.spans import length
from trainmaster_client.errors import InvalidArgumentError, MalformedViewError
from trainmaster_client.jobs.instants import clock, instant, likely_start

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Five hours behind UTC in November, also where no time zones are installed."""
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("p50", "p90", "expected"),
    [
        ("12:25", "14:30", "07:25 (in 25m00s), in 9 of 10 cases by 09:30 (in 2h30m)"),
        ("11:59", "12:01", "now, in 9 of 10 cases by 07:01 (in 1m00s)"),
        ("11:00", "11:30", "any moment now"),
    ],
)
def test_a_likely_start_is_told_in_this_machines_time(p50: str, p90: str, expected: str) -> None:
    estimate = {"p50": f"2026-11-21T{p50}:00Z", "p90": f"2026-11-21T{p90}:00.000Z"}
    assert likely_start(estimate, now=NOON) == f"Likely start: {expected}"


def test_a_start_on_another_day_has_the_day() -> None:
    estimate = {"p50": "2026-11-22T04:59:00Z", "p90": "2026-11-22T05:00:00Z"}
    told = "Likely start: 23:59 (in 16h59m), in 9 of 10 cases by Sun 22 Nov 00:00 (in 17h00m)"
    assert likely_start(estimate, now=NOON) == told


@pytest.mark.parametrize("estimate", [{}, {"p50": None, "p90": None}, {"p50": "soon", "p90": "later"}])
def test_an_estimate_that_is_none_is_another_version(estimate: dict[str, str]) -> None:
    with pytest.raises(MalformedViewError):
        likely_start(estimate, now=NOON)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOON - timedelta(seconds=90)),
        ("10m", NOON - timedelta(minutes=10)),
        ("2h", NOON - timedelta(hours=2)),
        ("7d", NOON - timedelta(days=7)),
        ("2026-11-21T10:00:00Z", NOON - timedelta(hours=2)),
        ("2026-11-21T05:00", NOON - timedelta(hours=2)),
    ],
)
def test_a_time_is_so_long_ago_or_an_instant(text: str, expected: datetime) -> None:
    assert instant(text, now=NOON) == expected


@pytest.mark.parametrize("text", ["", "soon", "10", "-5m", "999999999d", "2026-13-01"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="10m, 2h, 1d"):
        instant(text, now=NOON)


def test_a_length_has_two_units() -> None:
    spans = [timedelta(seconds=40), timedelta(hours=2, minutes=5, seconds=9), timedelta(days=3, hours=4)]
    assert [length(span) for span in spans] == ["40s", "2h05m", "3d04h"]


def test_C17_an_instant_behind_a_change_of_the_clocks_names_its_own_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times are said to be those of now; on 1 November 2026, 06:00 UTC, New York's go back by an hour."""
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    before = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert clock(before + timedelta(minutes=10), before) == "01:40"
    assert clock(before + timedelta(hours=1), before) == "01:30 EST"
