"""GET /events."""

import json
from typing import Any

import pytest
from trainmaster.api import events
from trainmaster.core.jobs.model import JobState
from trainmaster.core.outbox import platform_notice, to_tell
from trainmaster.core.outbox.texts.wording import Words
from trainmaster.core.policy import UNMANAGED

from tests.builders import NOON, minutes
from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, Api


def shown(api: Api, *, user: str = ADA, **query: Any) -> list[tuple[str, str, str | None]]:
    answer = api.get("/events", user=user, **query)
    assert answer.status == 200, answer
    return [(one["kind"], one["team"], one["job"]) for one in answer.json["events"]]


def warn(api: Api) -> None:
    notice = platform_notice("addition-refused", Words(what="AWS refuses it.", todo="Ask."))
    api.store.leave(UNMANAGED, [to_tell(notice, cause="p5#addition-refused", at=api.now)])


def some_events(api: Api) -> None:
    api.submit("a")
    api.end("a")
    api.submit("b", user=BOB)
    api.now = NOON + minutes(1)
    api.end("b")
    warn(api)


DONE_A, DONE_B = ("Job Completed", "vision", "a"), ("Job Completed", "speech", "b")
WARNED = ("Platform Warning", "operators", None)


def test_teams_see_their_own_events_and_admins_all(api: Api) -> None:
    some_events(api)
    assert shown(api) == [DONE_A]
    assert shown(api, user=BOB) == [DONE_B]
    assert shown(api, user=BOTH) == [DONE_A, DONE_B]
    assert shown(api, user=ADMIN) == [DONE_A, DONE_B, WARNED]


def test_an_event_has_the_detail_that_went_to_the_bus(api: Api) -> None:
    some_events(api)
    (event,) = api.get("/events").json["events"]
    assert event["at"] == "2026-11-02T12:00:00.000Z"
    assert event["detail"]["id"].endswith("#job-completed")
    assert event["detail"]["what"].startswith("Job a completed")
    assert event["detail"]["state"] == "completed"
    assert {"team", "job", "at", "version"}.isdisjoint(event["detail"])


def test_filters_cut_it_down(api: Api) -> None:
    some_events(api)
    assert shown(api, user=ADMIN, team="speech") == [DONE_B]
    assert shown(api, user=ADMIN, team="operators") == [WARNED]
    assert shown(api, user=ADMIN, kind="Platform Warning") == [WARNED]
    assert shown(api, user=ADMIN, since="2026-11-02T12:00:30Z") == [DONE_B, WARNED]
    assert shown(api, user=BOTH, team="vision", kind="Job Completed") == [DONE_A]
    assert shown(api, kind="Job Failed") == []


def test_a_preemption_does_not_name_a_job_of_another_team(api: Api) -> None:
    api.submit("a")
    api.start("a")
    api.end("a", JobState.PREEMPTED)
    (event,) = api.get("/events").json["events"]
    assert event["kind"] == "Job Preempted"
    assert "for_job" not in event["detail"]


@pytest.mark.parametrize(
    ("user", "query", "status", "field", "says"),
    [
        (ADA, {"kind": "Job Done"}, 400, "query.kind", "use one of: Job Completed, Job Stopped"),
        (ADA, {"team": "nlp"}, 400, "query.team", "use one of: vision"),
        (ADMIN, {"team": "nlp"}, 400, "query.team", "use one of: vision, speech, operators"),
        (ADA, {"team": "speech"}, 403, "query.team", "use one of: vision"),
        (ADA, {"team": "operators"}, 400, "query.team", "use one of: vision"),
        (ADA, {"since": "2026-10-01T00:00:00Z"}, 400, "query.since", "later instant"),
        (ADA, {"since": "2026-12-01T00:00:00Z"}, 400, "query.since", "is over"),
        (ADA, {"from": "x"}, 400, "query.from", "use since, team, kind, next_token"),
    ],
)
def test_bad_input_says_what_there_is(
    api: Api, user: str, query: dict[str, str], status: int, field: str, says: str
) -> None:
    answer = api.get("/events", user=user, **query)
    assert (answer.status, answer.fields) == (status, [field])
    assert says in answer.json["errors"][0]["hint"]


def test_pages_have_every_event_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BATCH", 2)
    monkeypatch.setattr(events, "MOST_LOOKED_AT", 2)
    for number in range(5):
        api.now = NOON + minutes(number)
        api.submit(f"a{number}")
        api.end(f"a{number}")
    jobs: list[str] = []
    query: dict[str, Any] = {}
    for _ in range(5):
        answer = api.get("/events", **query)
        assert len(answer.json["events"]) <= 2
        jobs += [one["job"] for one in answer.json["events"]]
        query["next_token"] = answer.json["next_token"]
        if query["next_token"] is None:
            break
    assert jobs == [f"a{number}" for number in range(5)]


def test_a_kind_of_a_newer_release_is_shown_as_it_is(api: Api) -> None:
    some_events(api)
    key = {"pk": {"S": "Y#2026-11-02"}}
    rows = api.client.query(
        TableName=api.table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": key["pk"]},
    )["Items"]
    for row in rows:
        api.client.put_item(TableName=api.table, Item=row | {"kind": {"S": "Job Dreamt Of"}})
    assert {kind for kind, *_ in shown(api, user=ADMIN)} == {"Job Dreamt Of"}


def test_markup_in_a_text_is_a_text(api: Api) -> None:
    notice = platform_notice("<b>", Words(what="<script>alert(1)</script>\x1b[31m", todo="Ask."))
    api.store.leave(UNMANAGED, [to_tell(notice, cause="p5", at=api.now)])
    (event,) = api.get("/events", user=ADMIN).json["events"]
    assert event["detail"]["what"] == "<script>alert(1)</script>\x1b[31m"
    assert "<script>" in json.dumps(event)
