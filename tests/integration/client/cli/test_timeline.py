"""``trainmaster timeline``: what it asks for, and what it prints into a pipe."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from trainmaster_client.cli.timeline import TimeSpan
from trainmaster_client.errors import InvalidArgumentError

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ATTEMPT = {
    "job": "job1",
    "team": "vision",
    "pool": "p5",
    "instances": {"ml.p5.48xlarge": 1},
    "claimed_at": "2026-11-22T11:00:00Z",
    "training_since": "2026-11-22T11:00:00Z",
    "ended_at": "2026-11-22T12:00:00Z",
    "end": "completed",
}
PAGE = {"attempts": [ATTEMPT], "capacity": [], "warm": [], "since": None, "next_token": None}


def test_the_pool_and_the_time_are_asked_for(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/timeline", Scripted(document=PAGE))
    times = ["--from", "2026-11-22T10:00:00Z", "--to", "2026-11-22T12:00:00+00:00"]
    ran = trainmaster("timeline", "--pool", "p5", *times)
    assert ran.code == 0
    (received,) = api.received
    assert received.query == {
        "pool": ["p5"],
        "from": ["2026-11-22T10:00:00Z"],
        "to": ["2026-11-22T12:00:00Z"],
    }
    (row,) = [line for line in ran.out.splitlines() if line.startswith("   1 |")]
    assert len(row) == 120
    assert row[6:-1].split() == ["=job1" + 52 * "="]


def test_json_has_all_pages_as_the_api_sent_them(trainmaster: Trainmaster, api: FakeApi) -> None:
    pages = (Scripted(document={**PAGE, "next_token": "t"}), Scripted(document={"attempts": [ATTEMPT]}))
    api.script("GET", "/timeline", *pages)
    assert json.loads(trainmaster("timeline", "--json").out)["attempts"] == [ATTEMPT, ATTEMPT]


@pytest.mark.parametrize("width", ["60", "80"])
def test_no_line_is_folded(
    width: str, trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("GET", "/timeline", Scripted(document=PAGE))
    monkeypatch.setenv("COLUMNS", width)
    times = ["--from", "2026-11-22T10:00:00Z", "--to", "2026-11-22T12:00:00Z"]
    lines = trainmaster("timeline", *times).out.splitlines()
    (row,) = [line for line in lines if line.startswith("   1 |")]
    assert len(row) == int(width)
    assert max(map(len, lines)) <= int(width)


def test_the_bounds_of_a_time() -> None:
    assert TimeSpan().bounds(now=NOON) == (NOON - timedelta(hours=24), NOON)
    assert TimeSpan(since="2h").bounds(now=NOON) == (NOON - timedelta(hours=2), NOON)
    assert TimeSpan(start="3d", end="2d").bounds(now=NOON) == (
        NOON - timedelta(days=3),
        NOON - timedelta(days=2),
    )
    assert TimeSpan(end="1h").bounds(now=NOON) == (NOON - timedelta(hours=25), NOON - timedelta(hours=1))


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (TimeSpan(since="1h", start="2h"), "--since goes without --from and --to"),
        (TimeSpan(start="1h", end="2h"), "--from is not before --to"),
        (TimeSpan(since="0s"), "--since is not before now"),
        (TimeSpan(end="soon"), "--to: 'soon' is not a valid time"),
        (TimeSpan(start="soon"), "--from: 'soon' is not a valid time"),
    ],
)
def test_a_wrong_time_is_refused_by_the_name_of_its_option(span: TimeSpan, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        span.bounds(now=NOON)
