"""Answers read as typed views: whole, masked, of a newer API, and broken."""

from typing import Any

import pytest
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import job_view


def test_another_teams_job_is_read_although_most_is_missing() -> None:
    masked = {
        "name": None,
        "team": "speech",
        "pool": "p5",
        "state": "running",
        "priority": 3,
        "instances": {"ml.p5.48xlarge": 2},
        "position": None,
        "started_at": "2026-11-21T01:00:00Z",
    }
    job = job_view(masked)
    assert (job.name, job.team, job.instances) == (None, "speech", "2x ml.p5.48xlarge")
    assert job.started_at is not None


def test_fields_of_a_newer_api_do_no_harm() -> None:
    assert job_view({"state": "hibernating", "moon": "full"}).state == "hibernating"


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        ("completed", "the training job completed", "the training job completed"),
        ("stopped-outside", "somebody stopped it", "stopped-outside: somebody stopped it"),
        ("completed", "", ""),
    ],
)
def test_a_reason_does_not_repeat_the_state(code: str, message: str, expected: str) -> None:
    job = job_view({"state": "completed", "reason": {"code": code, "message": message}})
    assert job.why == expected


def test_the_history_is_told_oldest_first_whatever_order_it_comes_in() -> None:
    late = {"at": "2026-11-21T02:00:00Z", "attempt": 0, "from": "pending", "to": "starting", "reason": None}
    early = {"at": "2026-11-21T01:00:00Z", "attempt": 0, "from": None, "to": "pending", "reason": None}
    job = job_view({"state": "starting", "history": [late, early]})
    assert [transition.to for transition in job.history] == ["pending", "starting"]


def attempt(**fields: Any) -> tuple[str, ...]:
    return job_view({"state": "running", "attempts": [{"attempt": 0, **fields}]}).attempts[0].warnings


def test_an_attempt_warns_of_what_its_owner_should_know() -> None:
    due = {"idle_since": "2026-11-21T01:00:00Z", "stop_due": "2026-11-21T01:10:00Z"}
    since = "its GPUs have been idle since 2026-11-21 01:00:00"
    assert attempt(**due) == (
        f"{since}; it will be stopped at 2026-11-21 01:10:00 unless they are used again",
    )
    assert attempt(idle_since=due["idle_since"]) == (since,)
    others = {
        "underused_since": due["idle_since"],
        "unguarded": {"code": "alarm-quota", "message": "no more alarms"},
        "checkpoint_overdue": True,
    }
    assert attempt(**others) == (
        "its GPUs have been underused since 2026-11-21 01:00:00",
        "its GPUs are not monitored: no more alarms",
        "its newest checkpoint is older than the policy allows",
    )
    assert attempt() == ()
    assert attempt(**due, ended_at="2026-11-21T02:00:00Z") == (), "it is over"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({}, id="no state"),
        pytest.param({"state": "running", "started_at": "yesterday"}, id="no time"),
        pytest.param({"state": "running", "position": "first"}, id="no number"),
        pytest.param({"state": "running", "waiting": "capacity"}, id="a reason that is text"),
        pytest.param({"state": "running", "history": [{}]}, id="a transition without time"),
    ],
)
def test_what_cannot_be_read_says_that_the_versions_differ(document: dict[str, Any]) -> None:
    with pytest.raises(MalformedViewError, match="as new as the deployed stack"):
        job_view(document)


def test_control_characters_become_spaces_and_letters_of_all_languages_stay() -> None:
    assert printable("a\x1b[31m\r\nb\u202eé\U0001f600") == "a [31m  b é\U0001f600"
    assert printable(None) == ""
