"""GET /pools/history."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import pool_history
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster_client.advice.commitments import past_use

from tests.builders import NOON, minutes, of
from tests.integration.api.conftest import ADMIN, BOB, DOCUMENT, G5, P5, Api
from tests.integration.api.test_timeline import ran

HOUR = {"from": "2026-11-02T12:00:00Z", "to": "2026-11-02T13:00:00Z", "step": "1800"}
"""Two halves of it."""


def halves(api: Api, kind: str, instance_type: str = P5, **query: Any) -> list[float]:
    answer = api.get("/pools/history", **HOUR | query)
    assert answer.status == 200, answer
    return [point["on-demand"][instance_type][kind] for point in answer.json["points"]]


def test_points_are_means_over_time(api: Api) -> None:
    ran(api, "a", at=NOON, lasted=minutes(45))
    ran(api, "b", at=NOON + minutes(50), lasted=minutes(30), user=BOB)
    api.now = NOON + timedelta(hours=2)
    answer = api.get("/pools/history", **HOUR)
    assert answer.status == 200
    assert (answer.json["step"], [point["at"] for point in answer.json["points"]]) == (
        1800,
        ["2026-11-02T12:00:00.000Z", "2026-11-02T12:30:00.000Z"],
    )
    idle = {"used": 0, "warm": 0, "capacity": 1, "waiting": 0}
    assert answer.json["points"][1] == {
        "at": "2026-11-02T12:30:00.000Z",
        "on-demand": {P5: {"used": 0.833, "warm": 0, "capacity": 2, "waiting": 0}, G5: idle},
        "spot": {},
    }
    assert halves(api, "used") == [1, 0.833]
    assert halves(api, "used", user=BOB) == [1, 0.833]
    assert set(api.get("/pools/history", **HOUR, pool="g5").json["points"][0]["on-demand"]) == {G5}


def test_whole_hours_are_what_the_advice_on_savings_plans_reads(api: Api) -> None:
    ran(api, "a", at=NOON, lasted=minutes(45))
    api.now = NOON + timedelta(hours=3)
    whole = {"from": "2026-11-02T12:00:00Z", "to": "2026-11-02T15:00:00Z", "step": "3600"}
    past = past_use(api.get("/pools/history", **whole).json["points"])
    assert (past.since, past.hours, past.types) == (NOON, 3, [P5])
    assert past.by_type[P5].used == (0.75, 0.0, 0.0)
    assert past.by_type[P5].capacity == 2


def test_a_job_is_counted_from_the_minute_it_came_to_the_minute_it_was_claimed(api: Api) -> None:
    api.now = NOON + minutes(10)
    api.submit("a")
    api.submit("b")
    api.now = NOON + minutes(30)
    api.start("a")
    api.now = NOON + minutes(40)
    api.call("DELETE", "/jobs/b")
    api.submit("c")
    api.now = NOON + timedelta(hours=1)
    assert halves(api, "waiting") == [1.333, 1]


def test_warm_instances_are_counted_while_they_are_kept(api: Api) -> None:
    left = WarmPool(
        training_job_name="left",
        team="vision",
        vector=of(1, P5),
        warm_key="k",
        since=NOON,
        expires_at=NOON + timedelta(hours=3),
    )
    api.store.change_warm("p5", None, left, at=NOON)
    api.now = NOON + minutes(45)
    api.store.change_warm("p5", left, None, at=api.now)
    api.store.change_warm("p5", None, left, at=api.now)
    api.now = NOON + timedelta(hours=1)
    assert halves(api, "warm") == [2, 1.5]


def test_a_change_of_capacity_counts_from_its_instant(api: Api) -> None:
    changed = DOCUMENT | {"pools": [{"name": "p5", "capacity": {P5: 4}}, DOCUMENT["pools"][1]]}
    api.now = NOON + minutes(45)
    assert api.call("PUT", "/policy", changed, user=ADMIN).status == 200
    api.now = NOON + timedelta(hours=1)
    assert halves(api, "capacity") == [2, 3]


def test_a_step_is_chosen_where_none_is_asked_for(api: Api) -> None:
    day = api.get("/pools/history").json
    assert (day["step"], len(day["points"])) == (300, 288)
    month = api.get("/pools/history", **{"from": "2026-10-03T12:00:00Z"}).json
    assert (month["step"], len(month["points"])) == (10800, 240)


def test_where_too_many_wait_nobody_says_how_many_did(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_history, "MOST_WAITING", 1)
    api.submit("a")
    api.submit("b")
    api.now = NOON + timedelta(hours=1)
    assert halves(api, "waiting") == [None, None]
    assert halves(api, "waiting", G5) == [0, 0]


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ({"step": "59"}, "query.step", "write it like 300"),
        ({"step": "86401"}, "query.step", "write it like 300"),
        ({"step": "٣٠٠"}, "query.step", "write it like 300"),
        ({"step": "60", "from": "2026-10-25T12:00:00Z"}, "query.step", "use 346 or more"),
        ({"pool": "P5"}, "query.pool", "use one of: p5, g5"),
        ({"from": "2026-09-02T12:00:00Z"}, "query.from", "shorter"),
        ({"to": "never"}, "query.to", "2026-11-02T12:00:00Z"),
    ],
)
def test_bad_input_says_the_field_and_what_to_do(
    api: Api, query: dict[str, str], field: str, says: str
) -> None:
    answer = api.get("/pools/history", **query)
    assert (answer.status, answer.fields) == (400, [field])
    assert says in answer.json["errors"][0]["hint"]


def test_more_than_an_answer_can_add_up_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_history, "MOST_ENDINGS", 2)
    monkeypatch.setattr(pool_history, "BATCH", 1)
    for number in range(3):
        ran(api, f"a{number}", at=NOON + minutes(number), lasted=minutes(1))
    answer = api.get("/pools/history")
    assert (answer.status, answer.fields) == (400, ["query.from"])
    monkeypatch.setattr(pool_history, "BATCH", 9)
    monkeypatch.setattr(pool_history, "MOST_BYTES", 1000)
    assert api.get("/pools/history").fields == ["query.step"]
