"""GET /timeline."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.api import timeline
from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.records import WriteCondition

from tests.builders import NOON, claimed, minutes, of, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, BOB, DOCUMENT, G5, P5, STRANGER, Api


def shown(api: Api, *, user: str = ADA, **query: Any) -> dict[str, Any]:
    answer = api.get("/timeline", user=user, **query)
    assert answer.status == 200, answer
    return answer.json


def attempts(api: Api, **query: Any) -> list[tuple[str | None, str | None]]:
    return [(one["job"], one["ended_at"]) for one in shown(api, **query)["attempts"]]


def ran(api: Api, name: str, *, at: datetime, lasted: timedelta, user: str = ADA, **changes: Any) -> None:
    """Submitted and claimed at an instant, completed later."""
    api.now = at
    assert api.submit(name, user=user, **changes).status == 201
    job = api.start(name)
    assert job.live is not None
    api.now = at + lasted
    news = seen(
        name,
        status="Completed",
        secondary="Completed",
        training_since=at + minutes(1),
        ended_at=at + lasted,
    )
    change = observed(job, news, now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)


def test_an_attempt_that_is_over_says_what_it_held_and_what_became_of_it(api: Api) -> None:
    ran(api, "a", at=NOON, lasted=minutes(30))
    (one,) = shown(api)["attempts"]
    assert one == {
        "job": "a",
        "attempt": 0,
        "team": "vision",
        "pool": "p5",
        "instances": {P5: 1},
        "capacity_type": "on-demand",
        "claimed_at": "2026-11-02T12:00:00.000Z",
        "training_since": "2026-11-02T12:01:00.000Z",
        "ended_at": "2026-11-02T12:30:00.000Z",
        "end": "completed",
        "preempted_by": None,
        "preempted_by_team": None,
        "warm_start": False,
        "lost_seconds": 0,
        "unknown_seconds": 0,
    }


def test_a_live_attempt_is_there_from_the_instant_of_its_claim(api: Api) -> None:
    api.submit("a")
    api.start("a")
    (one,) = shown(api)["attempts"]
    assert (one["job"], one["claimed_at"], one["ended_at"], one["end"], one["lost_seconds"]) == (
        "a",
        "2026-11-02T12:00:00.000Z",
        None,
        None,
        None,
    )


def test_an_attempt_that_ends_while_the_page_is_read_is_there_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.submit("a")
    api.start("a")
    news = seen(
        "a", status="Completed", secondary="Completed", training_since=NOON, ended_at=NOON + minutes(1)
    )
    read = type(api.reader).jobs

    def read_and_end(reader: Any, names: Sequence[str]) -> Any:
        found = read(reader, names)
        monkeypatch.undo()
        change = observed(api.job("a"), news, now=NOON + minutes(1))
        assert change is not None
        api.store.commit([change], at=NOON + minutes(1))
        return found

    monkeypatch.setattr(type(api.reader), "jobs", read_and_end)
    api.now = NOON + minutes(1)
    assert attempts(api) == [("a", "2026-11-02T12:01:00.000Z")]


def test_names_of_other_teams_are_null_everywhere(api: Api) -> None:
    api.submit("low")
    victim = api.start("low")
    api.submit("urgent", user=BOB)
    stopping = steps.preempted_for(victim, waiting_entry(api.job("urgent")))
    api.change("low", stopping)
    warm = WarmPool(
        training_job_name="left",
        team="vision",
        vector=of(1, P5),
        warm_key="k",
        since=NOON,
        expires_at=NOON + minutes(30),
    )
    api.store.change_warm("p5", None, warm, at=NOON)
    condition = WriteCondition(policy_version=api.policies.current().version, reuses=warm)
    job = api.job("urgent")
    api.store.commit([Change(before=job, after=claimed(job, "urgent"))], at=NOON, condition=condition)
    seen_by_bob, seen_by_ada = shown(api, user=BOB), shown(api, user=ADA)
    by_bob = {one["team"]: (one["job"], one["preempted_by"]) for one in seen_by_bob["attempts"]}
    by_ada = {one["team"]: (one["job"], one["preempted_by"]) for one in seen_by_ada["attempts"]}
    assert by_bob == {"vision": (None, "urgent"), "speech": ("urgent", None)}
    assert by_ada == {"vision": ("low", None), "speech": (None, None)}
    assert [(one["reused_by"], one["reused_by_team"]) for one in seen_by_bob["warm"]] == [
        ("urgent", "speech")
    ]
    assert [(one["reused_by"], one["reused_by_team"]) for one in seen_by_ada["warm"]] == [(None, "speech")]
    by_admin = shown(api, user=ADMIN)
    assert {one["job"] for one in by_admin["attempts"]} == {"low", "urgent"}


def test_a_period_is_half_open_and_by_default_the_last_day(api: Api) -> None:
    ran(api, "a", at=NOON, lasted=timedelta(hours=2))
    ran(api, "b", at=NOON + timedelta(hours=3), lasted=timedelta(hours=1))
    api.now = NOON + timedelta(hours=26, minutes=30)
    assert [name for name, _ in attempts(api)] == ["b"]
    hours = {"from": "2026-11-02T14:00:00Z", "to": "2026-11-02T15:00:00Z"}
    assert attempts(api, **hours) == []
    hours = {"from": "2026-11-02T13:59:59", "to": "2026-11-02T15:00:01Z"}
    assert [name for name, _ in attempts(api, **hours)] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ({"from": "yesterday"}, "query.from", "2026-11-02T12:00:00Z"),
        ({"to": "0001-01-01T00:00:00+14:00"}, "query.to", "2026-11-02T12:00:00Z"),
        ({"from": "2026-09-01T00:00:00Z"}, "query.from", "shorter"),
        ({"from": "2026-11-03T00:00:00Z"}, "query.from", "has begun"),
        ({"from": "2026-11-02T11:00:00Z", "to": "2026-11-02T11:00:00Z"}, "query.from", "has begun"),
        ({"pool": "g6"}, "query.pool", "use one of: p5, g5"),
        ({"next_token": "x"}, "query.next_token", "start again"),
        ({"until": "x"}, "query.until", "use pool, from, to, next_token"),
    ],
)
def test_bad_input_says_the_field_and_what_to_do(
    api: Api, query: dict[str, str], field: str, says: str
) -> None:
    answer = api.get("/timeline", **query)
    assert (answer.status, answer.fields) == (400, [field])
    assert says in answer.json["errors"][0]["hint"]


def test_a_stranger_sees_nothing(api: Api) -> None:
    assert api.get("/timeline", user=STRANGER).status == 403


def test_pages_show_every_attempt_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        ran(api, f"past-{number}", at=NOON + minutes(number), lasted=minutes(1))
    ran(api, "long", at=NOON, lasted=timedelta(hours=30))
    for name in ("live-1", "live-2"):
        api.submit(name, ResourceConfig={"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 50})
        api.start(name)
    monkeypatch.setattr(timeline, "PAGE", 2)
    query: dict[str, Any] = {"from": "2026-11-02T12:00:00Z"}
    names: list[str] = []
    for page in range(9):
        body = shown(api, **query)
        assert (body["capacity"] != []) is (page == 0)
        assert len(body["attempts"]) <= 2
        names += [one["job"] for one in body["attempts"]]
        if body["next_token"] is None:
            break
        query["next_token"] = body["next_token"]
    assert names == ["long", *(f"past-{number}" for number in range(5)), "live-1", "live-2"]


def test_a_token_fits_no_other_period_and_nobody_else(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "PAGE", 1)
    for number in range(2):
        ran(api, f"past-{number}", at=NOON + minutes(number), lasted=minutes(1))
    token = shown(api)["next_token"]
    assert api.get("/timeline", next_token=token).status == 200
    assert api.get("/timeline", next_token=token, pool="p5").status == 400
    assert api.get("/timeline", next_token=token, user=BOB).status == 400


def test_the_first_capacity_line_is_the_one_in_force_when_the_period_began(api: Api) -> None:
    assert shown(api, pool="p5")["capacity"] == [
        {"at": "2026-11-01T12:00:00.000Z", "pool": "p5", "capacity": {P5: 2}, "spot_capacity": {}}
    ]
    changed = DOCUMENT | {
        "pools": [{"name": "p5", "capacity": {P5: 3}, "spot_capacity": {P5: 1}}, DOCUMENT["pools"][1]]
    }
    api.now = NOON + minutes(5)
    assert api.call("PUT", "/policy", changed, user=ADMIN).status == 200
    api.now = NOON + minutes(9)
    body = shown(api, pool="p5")
    assert [(one["at"], one["capacity"], one["spot_capacity"]) for one in body["capacity"]] == [
        ("2026-11-01T12:09:00.000Z", {P5: 2}, {}),
        ("2026-11-02T12:05:00.000Z", {P5: 3}, {P5: 1}),
    ]
    assert body["since"] == "2026-11-02T12:05:00.000Z"
    assert len(shown(api)["capacity"]) == 3


@pytest.mark.parametrize(
    ("checkpoints", "lost", "unknown"),
    [
        pytest.param(None, 600, 0, id="it saves nothing"),
        pytest.param({"S3Uri": "s3://data/ck"}, 0, 600, id="C19: unseen"),
    ],
)
def test_a_preempted_attempt_says_what_was_lost_or_may_be(
    api: Api, checkpoints: dict[str, str] | None, lost: int, unknown: int
) -> None:
    api.submit("low", CheckpointConfig=checkpoints)
    victim = api.start("low")
    api.change("low", steps.preempted_for(victim, waiting_entry(api.job("low"))))
    api.now = NOON + minutes(10)
    news = seen("low", status="Stopped", secondary="Stopped", training_since=NOON, ended_at=api.now)
    change = observed(api.job("low"), news, now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)
    assert api.job("low").state is JobState.PREEMPTED
    (one,) = shown(api)["attempts"]
    assert (one["end"], one["preempted_by"], one["lost_seconds"]) == ("preemption", "low", lost)
    assert one["unknown_seconds"] == unknown
