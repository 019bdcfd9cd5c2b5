"""``trainmaster events``: what it asks, what it prints, and what it does while the API gives no answer."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.cli import events
from trainmaster_client.cli.events import EventWatch, event_line
from trainmaster_client.errors import (
    ApiUnreachableError,
    CredentialsError,
    ForbiddenError,
    Problem,
    TrainmasterClientError,
)
from trainmaster_client.jobs.event_feed import EventFeed, queue_event

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def event(job: str | None = "job1", **fields: Any) -> dict[str, Any]:
    return {
        "at": "2026-11-22T12:00:00.000Z",
        "kind": "Job Preempted",
        "team": "vision",
        "job": job,
        "detail": {"what": f"{job} was preempted.", "why": "urgent-1 has priority 9."},
        **fields,
    }


def script(api: FakeApi, *found: dict[str, Any]) -> None:
    api.script("GET", "/events", Scripted(document={"events": list(found), "next_token": None}))


def test_each_event_is_a_line(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, event(), event(None, kind="Budget Warning", detail={"what": "80 % are spent."}))
    lines = trainmaster("events").out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "Job Preempted  vision  job1  job1 was preempted. urgent-1 has priority 9.",
        "Budget Warning  vision  80 % are spent.",
    ]


def test_filters_and_since_are_asked_for(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    ran = trainmaster("events", "--team", "vision", "--kind", "Job Failed", "--since", "2026-11-22T10:00:00Z")
    (received,) = api.received
    assert received.query == {
        "since": ["2026-11-22T10:00:00.000000Z"],
        "team": ["vision"],
        "kind": ["Job Failed"],
    }
    assert (ran.code, ran.out, ran.err) == (0, "", "No events in that time.\n")


def test_json_is_a_document_a_line_as_the_api_sent_it(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, event(), event("job2"))
    assert [json.loads(line)["job"] for line in trainmaster("events", "--json").out.splitlines()] == [
        "job1",
        "job2",
    ]


def test_a_wrong_since_is_exit_code_2(trainmaster: Trainmaster, api: FakeApi) -> None:
    ran = trainmaster("events", "--since", "yesterday")
    assert (ran.code, api.received) == (2, [])
    assert "'yesterday' is not a valid time" in ran.err


@pytest.mark.parametrize("command", [["events"], ["timeline"]])
def test_an_older_stack_without_the_route_is_said(
    command: list[str], trainmaster: Trainmaster, api: FakeApi
) -> None:
    """As API Gateway answers an unknown path."""
    headers = {"content-type": "application/json", "x-amzn-ErrorType": "MissingAuthenticationTokenException"}
    missing = Scripted(status=403, document={"message": "Missing Authentication Token"}, headers=headers)
    api.script("GET", f"/{command[0]}", missing)
    api.script("GET", "/jobs", Scripted(document={"jobs": []}))
    ran = trainmaster(*command)
    assert ran.code == 3
    assert f"it has no route /{command[0]}. The stack is older than this client." in ran.err


def test_a_wrong_stage_is_not_called_an_older_stack(trainmaster: Trainmaster, api: FakeApi) -> None:
    headers = {"content-type": "application/json", "x-amzn-ErrorType": "MissingAuthenticationTokenException"}
    missing = Scripted(status=403, document={"message": "Missing Authentication Token"}, headers=headers)
    api.script("GET", "/events", missing)
    api.script("GET", "/jobs", missing)
    ran = trainmaster("events")
    assert ran.code == 3
    assert "older" not in ran.err


def test_an_unknown_kind_is_refused_in_the_apis_words(trainmaster: Trainmaster, api: FakeApi) -> None:
    wrong = {"field": "kind", "message": "'x' is not a kind", "hint": "one of: Job Failed"}
    api.script("GET", "/events", problem(400, "Bad request", "the query", wrong))
    ran = trainmaster("events", "--kind", "x")
    assert ran.code == 1
    assert "kind: 'x' is not a kind; one of: Job Failed" in ran.err


class EnoughError(Exception):
    pass


class Waits:
    """Ends the watch after so many pauses."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.waited: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.left -= 1
        if self.left < 0:
            raise EnoughError


def followed(
    answers: list[list[dict[str, Any]] | TrainmasterClientError],
) -> tuple[list[str], list[TrainmasterClientError], Waits]:
    """The jobs that were shown, what was lost in between, and the pauses."""
    script, shown = iter(answers), list[str]()
    lost: list[TrainmasterClientError] = []

    def ask(_since: str, _token: str | None) -> dict[str, Any]:
        answer = next(script)
        if isinstance(answer, TrainmasterClientError):
            raise answer
        return {"events": answer, "next_token": None}

    waits = Waits(len(answers) - 1)
    watch = EventWatch(
        feed=EventFeed(ask, since=NOON),
        show=lambda seen, _document: shown.append(seen.job),
        lost=lost.append,
        sleep=waits,
    )
    with pytest.raises(EnoughError):
        watch.run()
    return shown, lost, waits


def test_following_shows_each_event_once_through_silences_and_expired_credentials(
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = ApiUnreachableError("https://api", why="no route.")
    expired = CredentialsError("they have expired.")
    one, two, three = event("one"), event("two"), event("three")
    shown, lost, waits = followed([[one], away, away, [one, two], expired, [two, three]])
    assert shown == ["one", "two", "three"]
    assert lost == [away, away, expired]
    assert set(waits.waited) == {events.POLL_SECONDS}
    said = capsys.readouterr().err
    assert said.count("Still trying; no event is lost.") == 2


def test_following_ends_where_another_try_does_not_help() -> None:
    refusal = ForbiddenError(Problem(status=403, title="Forbidden", detail="no team"))
    with pytest.raises(ForbiddenError):
        followed([[event("one")], refusal])


@pytest.mark.parametrize("name", ["[red]x[/red]", "a\x1b[2Jb", "a\nb", "\u202e"])
def test_a_hostile_name_is_text_on_one_line(name: str, trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, event(name))
    out = trainmaster("events").out
    assert out.count("\n") == 1
    assert out.removesuffix("\n").isprintable()
    assert event_line(queue_event(event(name))) in out
