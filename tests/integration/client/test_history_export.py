"""The history of an account, read from its API in pages and parts."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ForbiddenError, InvalidArgumentError, TooManyRequestsError
from trainmaster_client.simulate.sources import Period, history_from_account, history_from_file

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem

ROUTE = "/history/export"
NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
DAY = Period(since=NOON, until=NOON + timedelta(days=1))


def line(name: str, submitted_at: str = "2026-11-02T13:00:00Z") -> dict[str, Any]:
    return {
        "name": name,
        "team": "vision",
        "submitted_by": "ada",
        "pool": "p5",
        "instances": {"ml.p5.48xlarge": 1},
        "capacity_type": "on-demand",
        "priority": 5,
        "submitted_at": submitted_at,
        "max_runtime_seconds": 86_400,
        "saves_checkpoints": False,
        "attempts": [],
        "end": None,
    }


def page(*lines: dict[str, Any], token: str | None = None) -> Scripted:
    headers = {"content-type": "application/x-ndjson"} | ({"trainmaster-next-token": token} if token else {})
    return Scripted(raw="".join(json.dumps(one) + "\n" for one in lines).encode(), headers=headers)


@pytest.fixture
def client(api: FakeApi, boto_session: boto3.Session) -> ApiClient:
    return ApiClient(api.url, boto_session)


def asked(api: FakeApi) -> list[dict[str, list[str]]]:
    return [one.query for one in api.received]


def test_all_pages_of_a_period_are_read(api: FakeApi, client: ApiClient) -> None:
    api.script("GET", ROUTE, page(line("a"), token="t1"), page(line("b"), token="t2"), page(line("c")))
    progress: list[int] = []
    found = history_from_account(client, DAY, progress=lambda done, _: progress.append(done))
    assert [job.name for job in found.jobs] == ["a", "b", "c"]
    assert progress == [1, 2, 3]
    assert [one.get("next_token") for one in asked(api)] == [None, ["t1"], ["t2"]]
    assert found.source == f"stack at {api.url}, 2026-11-02 to 2026-11-03"


def test_longer_periods_are_read_in_parts_and_a_job_of_two_parts_counts_once(
    api: FakeApi, client: ApiClient
) -> None:
    api.script("GET", ROUTE, page(line("a"), line("b")), page(line("b"), line("c")))
    found = history_from_account(client, Period(since=NOON, until=NOON + timedelta(days=40)))
    assert [(one["from"], one["to"]) for one in asked(api)] == [
        (["2026-11-02T12:00:00.000Z"], ["2026-12-03T12:00:00.000Z"]),
        (["2026-12-03T12:00:00.000Z"], ["2026-12-12T12:00:00.000Z"]),
    ]
    assert [job.name for job in found.jobs] == ["a", "b", "c"]


def test_an_api_that_is_asked_too_often_is_waited_for(api: FakeApi, client: ApiClient) -> None:
    busy = replace(problem(429, "Too many requests", "too many reads"), headers={"Retry-After": "30"})
    api.script("GET", ROUTE, busy, page(line("a")))
    waits: list[float] = []
    assert history_from_account(client, DAY, pause=waits.append).jobs
    assert waits == [30]
    api.script("GET", ROUTE, busy)
    with pytest.raises(TooManyRequestsError):
        history_from_account(client, DAY, pause=waits.append)


def test_who_is_no_admin_reads_what_to_do(api: FakeApi, client: ApiClient, trainmaster: Trainmaster) -> None:
    api.script("GET", ROUTE, problem(403, "Forbidden", "for admins"))
    with pytest.raises(ForbiddenError) as error:
        history_from_account(client, DAY)
    (note,) = error.value.__notes__
    assert "Ask one to run trainmaster history-export" in note
    ran = trainmaster("history-export")
    assert ran.code == 1
    assert note in ran.err


def test_a_period_without_jobs_says_so(api: FakeApi, client: ApiClient) -> None:
    api.script("GET", ROUTE, page())
    with pytest.raises(InvalidArgumentError, match="has no jobs to replay"):
        history_from_account(client, DAY)


def test_the_command_prints_the_lines_as_they_came(api: FakeApi, trainmaster: Trainmaster) -> None:
    api.script("GET", ROUTE, page(line("a"), token="t1"), page(line("b")))
    ran = trainmaster("history-export", "--from", "2026-11-02T12:00:00Z", "--to", "2026-11-03T12:00:00Z")
    assert (ran.code, [json.loads(one)["name"] for one in ran.out.splitlines()]) == (0, ["a", "b"])
    assert ran.err == "2 lines of 2026-11-02 to 2026-11-03.\n"
    assert asked(api)[0] == {"from": ["2026-11-02T12:00:00.000Z"], "to": ["2026-11-03T12:00:00.000Z"]}


def test_the_command_writes_a_file_that_a_simulation_reads(
    api: FakeApi, trainmaster: Trainmaster, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl.gz"
    api.script("GET", ROUTE, page(line("a"), token="t1"), Scripted(status=403, document={}))
    assert trainmaster("history-export", "--output", str(path)).code == 1
    assert not path.exists(), "half of a history is none"
    api.script("GET", ROUTE, page(line("a"), token="t1"), page(line("b")))
    assert trainmaster("history-export", "--output", str(path)).code == 0
    assert [job.name for job in history_from_file(path).jobs] == ["a", "b"]
    assert trainmaster("history-export", "--output", str(tmp_path / "none" / "file")).code == 2


def test_a_period_that_ends_before_it_begins_is_refused_before_anything_is_sent(
    api: FakeApi, trainmaster: Trainmaster
) -> None:
    ran = trainmaster("history-export", "--from", "2026-11-03T12:00:00Z", "--to", "2026-11-02T12:00:00Z")
    assert ran.code == 2
    assert "Write a begin before its end" in ran.err
    assert not api.received
