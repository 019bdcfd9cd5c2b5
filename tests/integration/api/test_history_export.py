"""GET /history/export."""

import json
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.api import history_export
from trainmaster.core.jobs.attempts import MOST_STATUSES, Reason, StatusStart
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.steps import checkpoint_seen

from tests.builders import NOON, claimed, minutes, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, G5, P5, Api
from tests.integration.api.test_timeline import ran


def page(api: Api, **query: Any) -> tuple[list[dict[str, Any]], str | None]:
    multi = {name: [text] for name, text in query.items()}
    event = {
        "path": "/history/export",
        "httpMethod": "GET",
        "headers": {},
        "multiValueQueryStringParameters": multi,
        "requestContext": {"identity": {"userArn": ADMIN}},
    }
    answer = api.handle(event, None)
    assert answer["statusCode"] == 200, answer
    headers = {name.lower(): values[0] for name, values in answer["multiValueHeaders"].items()}
    assert headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer["body"].splitlines()]
    return lines, headers.get("trainmaster-next-token")


def test_a_line_has_the_job_as_it_was_asked_for_and_its_attempts(api: Api) -> None:
    ran(api, "a", at=NOON, lasted=minutes(30), priority=7)
    (line,), token = page(api)
    assert token is None
    assert line == {
        "name": "a",
        "team": "vision",
        "submitted_by": ADA,
        "pool": "p5",
        "instances": {P5: 1},
        "capacity_type": "on-demand",
        "priority": 7,
        "submitted_at": "2026-11-02T12:00:00.000Z",
        "max_runtime_seconds": 3600,
        "saves_checkpoints": False,
        "preemptible": True,
        "entry_id": api.job("a").spec.entry_id,
        "max_wait_seconds": None,
        "warm_key": api.job("a").spec.shapes[0].warm_key,
        "learned_in": list(api.job("a").spec.learned_in or ()),
        "after": [],
        "array": None,
        "array_at_most": None,
        "array_stop_after": None,
        "elastic": None,
        "avoids_plans": False,
        "attempts": [
            {
                "started_at": "2026-11-02T12:00:00.000Z",
                "training_since": "2026-11-02T12:01:00.000Z",
                "ended_at": "2026-11-02T12:30:00.000Z",
                "end": "completed",
                "lost_seconds": 0,
                "trained_seconds": 1740,
                "interruptions": 0,
                "warm_start": False,
                "instances": 1,
                "plan": None,
                "checkpoint_at": None,
                "statuses": None,
            }
        ],
        "end": "completed",
        "ended_at": "2026-11-02T12:30:00.000Z",
    }


def test_a_line_names_the_jobs_that_it_waited_for_whether_it_is_over_or_not(api: Api) -> None:
    api.submit("a")
    api.submit("b", tags={"trainmaster:after": "afterany:a"})
    condition = {"when": "afterany", "job": "a", "entry_id": api.job("a").spec.entry_id}
    assert {line["name"]: line["after"] for line in page(api)[0]} == {"a": [], "b": [condition]}
    why = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped")
    api.change("b", steps.cancelled(api.job("b"), reason=why, now=api.now))
    ended = next(line for line in page(api)[0] if line["name"] == "b")
    assert (ended["end"], ended["after"]) == ("stopped-by-user", [condition])


def test_earlier_attempts_and_jobs_that_are_not_over_are_in_it(api: Api) -> None:
    api.submit("again")
    api.end("again", JobState.PREEMPTED)
    api.now = NOON + minutes(10)
    again = api.job("again")
    api.change("again", claimed(again, "again-r1", now=api.now))
    api.now = NOON + minutes(20)
    api.submit("waits")
    api.submit("held")
    api.call("PATCH", "/jobs/held", {"held": True})
    api.submit("withdrawn")
    api.call("DELETE", "/jobs/withdrawn")
    lines, _ = page(api)
    assert [(one["name"], one["end"], [two["end"] for two in one["attempts"]]) for one in lines] == [
        ("held", None, []),
        ("waits", None, []),
        ("again", None, ["preemption", None]),
        ("withdrawn", "stopped-by-user", []),
    ]
    assert [one["ended_at"] for one in lines] == [None, None, None, "2026-11-02T12:20:00.000Z"]


def test_a_job_is_in_it_where_it_overlaps_the_period(api: Api) -> None:
    ran(api, "early", at=NOON, lasted=minutes(10))
    ran(api, "over", at=NOON + minutes(5), lasted=minutes(30))
    ran(api, "late", at=NOON + minutes(40), lasted=minutes(1))
    lines, _ = page(api, **{"from": "2026-11-02T12:20:00Z", "to": "2026-11-02T12:30:00Z"})
    assert [line["name"] for line in lines] == ["over"]


def test_pages_have_every_job_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_export, "PAGE", 2)
    monkeypatch.setattr(history_export, "BATCH", 1)
    for number in range(3):
        ran(api, f"past-{number}", at=NOON + minutes(number), lasted=minutes(1))
        api.submit(f"waits-{number}")
    on_g5 = {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 50}
    api.submit("runs", ResourceConfig=on_g5)
    api.start("runs")
    names: list[str] = []
    query: dict[str, str] = {}
    for _ in range(12):
        lines, token = page(api, **query)
        assert len(lines) <= 2
        names += [line["name"] for line in lines]
        if token is None:
            break
        query = {"next_token": token}
    waiting = [f"waits-{number}" for number in range(3)]
    assert names == [*waiting, *(f"past-{number}" for number in range(3)), "runs"]


def test_it_is_for_admins(api: Api) -> None:
    assert api.get("/history/export").status == 403
    assert api.get("/history/export", user=ADMIN, pool="p5").fields == ["query.pool"]


def test_an_attempt_has_the_checkpoint_and_the_statuses_that_were_seen(api: Api) -> None:
    assert api.submit("a").status == 201
    job = checkpoint_seen(api.start("a"), NOON + minutes(20))
    api.store.commit([Change(before=api.job("a"), after=job)], at=NOON + minutes(21))
    statuses = (
        StatusStart(status="Training", at=NOON + minutes(1)),
        StatusStart(status="Completed", at=NOON + minutes(30)),
    )
    news = seen("a", status="Completed", secondary="Completed", training_since=NOON + minutes(1))
    change = observed(
        api.job("a"), replace(news, ended_at=NOON + minutes(30), statuses=statuses), now=api.now
    )
    assert change is not None
    api.store.commit([change], at=api.now)
    ((line,), _) = page(api)
    (one,) = line["attempts"]
    assert one["checkpoint_at"] == "2026-11-02T12:20:00.000Z"
    assert one["statuses"] == [
        {"status": "Training", "at": "2026-11-02T12:01:00.000Z"},
        {"status": "Completed", "at": "2026-11-02T12:30:00.000Z"},
    ]


def test_of_too_many_statuses_none_are_kept(api: Api) -> None:
    assert api.submit("a").status == 201
    many = (StatusStart(status="Training", at=NOON),) * (MOST_STATUSES + 1)
    news = seen("a", status="Completed", secondary="Completed", training_since=NOON)
    change = observed(api.start("a"), replace(news, ended_at=NOON, statuses=many), now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)
    ((line,), _) = page(api)
    assert line["attempts"][0]["statuses"] is None
