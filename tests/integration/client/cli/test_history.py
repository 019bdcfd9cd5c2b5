"""trainmaster history, of one job and of those that are over, against the fake API."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster_client.cli.history import past_lines

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, history, view

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)


def over(name: str | None, hour: int, state: str = "completed", **fields: Any) -> dict[str, Any]:
    """Ended at that hour."""
    times = {"started_at": "2026-11-21T01:30:00Z", "ended_at": f"2026-11-21T{hour:02}:00:00Z"}
    return view(name, state=state, position=None, **{**times, **fields})


def script(api: FakeApi, *pages: list[dict[str, Any]], token: str | None = None) -> None:
    """The answers for completed, failed and stopped jobs, in this order."""
    api.script("GET", "/jobs", *(Scripted(document={"jobs": page, "next_token": token}) for page in pages))


def test_a_job_is_told_step_by_step_with_lengths_causes_and_sums(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    steps = history(
        ("pending", 0, ""), ("starting", 0, ""), ("running", 0, ""), ("preempting", 0, "job4 has priority 3")
    )
    steps += [{**step, "at": step["at"].replace("T01", "T03")} for step in history(("preempted", 1, ""))]
    steps += [{**step, "at": step["at"].replace("T01", "T04")} for step in history(("running", 1, ""))]
    steps += [{**step, "at": step["at"].replace("T01", "T05")} for step in history(("completed", 1, ""))]
    losses: dict[str, Any] = {
        "preemptions": 1,
        "wasted_seconds": {"preemption": 720, "failures": 0},
        "cost_usd": 12.5,
    }
    api.script(
        "GET",
        "/jobs/job1",
        Scripted(document=view(state="completed", history=steps, cost_is_estimate=False, **losses)),
    )
    ran = trainmaster("history", "job1")
    assert ran.out.splitlines() == [
        "job1: completed",
        "  waited 1h01m, started 1m00s, ran 1h01m, stopped 1h57m",
        "  1 preemption, lost 12m00s to preemption, 12.50 USD",
        "2026-11-21 01:00:00   1m00s  Pending",
        "2026-11-21 01:01:00   1m00s  Starting - attempt 0",
        "2026-11-21 01:02:00   1m00s  Running - attempt 0",
        "2026-11-21 01:03:00   1h57m  Preempting - job4 has priority 3",
        "2026-11-21 03:00:00   1h00m  Preempted",
        "2026-11-21 04:00:00   1h00m  Resumed - attempt 1",
        "2026-11-21 05:00:00       -  Completed",
    ]


def test_the_last_step_of_a_job_that_is_not_over_lasts_until_now() -> None:
    document = view(history=history(("pending", 0, "")), retries=2, cost_usd=0.5)
    assert list(past_lines(document, now=NOW)) == [
        "job1: pending",
        "  waited 1h00m",
        "  2 retries, 0.50 USD so far",
        "2026-11-21 01:00:00   1h00m  Pending",
    ]


def test_a_job_without_steps_has_only_its_state() -> None:
    assert list(past_lines(view(), now=NOW)) == ["job1: pending"]


def test_jobs_that_are_over_are_shown_newest_first_with_what_they_cost(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    why = {"code": "gpu-oom", "message": ""}
    failed = over("job2", 3, "failed", reason=why, attempt=2, preemptions=1, cost_usd=1.5)
    never = over("job3", 4, "stopped", started_at=None, cost_usd=0)
    script(api, [over("job1", 2, wasted_seconds={"preemption": 60, "idle": 5})], [failed], [never])
    ran = trainmaster("history")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["JOB", "TEAM", "STATE", "ENDED", "RAN", "ATTEMPTS", "PREEMPTED", "LOST", "USD", "WHY"],
        ["job3", "default", "stopped", "2026-11-21", "04:00", "-", "0", "0", "0s", "0.00"],
        ["job2", "default", "failed", "2026-11-21", "03:00", "1h30m", "3", "1", "0s", "1.50", "gpu-oom"],
        ["job1", "default", "completed", "2026-11-21", "02:00", "30m00s", "1", "0", "1m05s", "?"],
    ]
    assert [one.query["state"] for one in api.received] == [["completed"], ["failed"], ["stopped"]]


def test_jobs_of_other_teams_are_left_out_and_every_page_is_read(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    masked = {"name": None, "team": "speech", "state": "completed"}
    pages = [{"jobs": [masked], "next_token": "t"}, {"jobs": [over("job1", 2)], "next_token": None}]
    api.script("GET", "/jobs", *(Scripted(document=page) for page in pages))
    ran = trainmaster("history", "--state", "completed", "--team", "vision", "--json")
    assert json.loads(ran.out) == {"jobs": [over("job1", 2)], "next_token": None}
    asked = {"state": ["completed"], "team": ["vision"], "limit": ["100"]}
    assert [one.query for one in api.received] == [asked, {**asked, "next_token": ["t"]}]


def test_since_leaves_out_what_ended_before(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, [over("job1", 2), over("job2", 4)], [])
    ran = trainmaster("history", "--since", "2026-11-21T03:00:00Z", "--json")
    assert [one["name"] for one in json.loads(ran.out)["jobs"]] == ["job2"]


def test_the_newest_fifty_are_shown_unless_all_are_asked_for(trainmaster: Trainmaster, api: FakeApi) -> None:
    many = [over(f"job-{number}", 2) for number in range(60)]
    script(api, many, [])
    ran = trainmaster("history")
    assert (len(ran.out.splitlines()), ran.err) == (51, "10 more: --all shows them.\n")
    script(api, many, [])
    assert (len(trainmaster("history", "--all").out.splitlines())) == 61


def test_a_history_too_long_to_be_read_says_so(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, [over("job1", 2)], token="more")
    ran = trainmaster("history", "--state", "completed", "--json")
    assert (len(api.received), ran.err) == (
        20,
        "There are more than were read: narrow them with --team or --state.\n",
    )


def test_no_job_is_over_yet(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, [])
    assert trainmaster("history").out == "No jobs.\n"


@pytest.mark.parametrize(
    "arguments", [["--state", "running"], ["--since", "soon"], ["job1", "--all"], ["job1", "--team", "a"]]
)
def test_filters_that_cannot_be_are_wrong_usage(
    arguments: list[str], trainmaster: Trainmaster, api: FakeApi
) -> None:
    assert trainmaster("history", *arguments).code == 2
    assert api.received == []


def test_sixty_columns_show_two_lines_a_job(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lost: dict[str, Any] = {
        "wasted_seconds": {"preemption": timedelta(hours=1).seconds},
        "preemptions": 2,
        "attempt": 2,
    }
    script(api, [over("job1", 2, **lost)], [])
    assert [line.rstrip() for line in trainmaster("history").out.splitlines()] == [
        "job1",
        "    completed 2026-11-21 02:00, ran 30m00s, 3 attempts,",
        "    preempted 2x, lost 1h00m, cost unknown",
    ]
