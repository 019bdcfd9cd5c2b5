"""``estimated_start``: on GET of one job and on dry runs, nowhere else."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.candidates import FIRST
from trainmaster.core.planning.wait_reasons import MAX_POSITION

from tests.bodies import body
from tests.builders import changed
from tests.integration.api.conftest import ADA, ADMIN, DOCUMENT, P5, Api


@pytest.fixture
def full(api: Api) -> Api:
    """Both instances of pool p5 taken, for at most an hour of training from now on."""
    for name in ("one", "two"):
        api.submit(name, priority=5)
        job = api.start(name)
        assert job.live is not None
        api.change(name, replace(job, live=changed(job.live, training_since=api.now)))
    return api


def start(api: Api, name: str) -> tuple[datetime, datetime]:
    found = api.get(f"/jobs/{name}").json["estimated_start"]
    assert found.keys() == {"p50", "p90"}
    return datetime.fromisoformat(found["p50"]), datetime.fromisoformat(found["p90"])


def test_a_waiting_job_is_told_when_it_is_likely_to_start(full: Api) -> None:
    full.submit("a")
    early, late = start(full, "a")
    assert full.now < early <= late < full.now + timedelta(hours=3)


def test_the_same_question_has_the_same_answer(full: Api) -> None:
    full.submit("a")
    assert start(full, "a") == start(full, "a")


def test_those_further_behind_start_later(full: Api) -> None:
    for number in range(9):
        full.submit(f"job-{number}")
    assert start(full, "job-8")[0] > start(full, "job-0")[0]


def test_a_job_that_fits_starts_about_now(api: Api) -> None:
    api.submit("a")
    assert start(api, "a")[0] < api.now + timedelta(minutes=5)


def test_who_asks_again_and_again_can_do_without_it(full: Api) -> None:
    full.submit("a")
    assert full.call("GET", "/jobs/a", query={"estimate": "false"}).json["estimated_start"] is None
    assert full.call("GET", "/jobs/a", query={"estimate": "true"}).json["estimated_start"] is not None
    refused = full.call("GET", "/jobs/a", query={"estimate": "no"})
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "query.estimate")


def test_an_attempt_that_does_not_train_yet_is_bounded_by_what_it_asked_for(api: Api) -> None:
    for name in ("one", "two"):
        api.submit(name, priority=5)
        api.start(name)
    api.submit("a")
    assert start(api, "a")[1] < api.now + timedelta(hours=4)


def test_a_dry_run_has_the_estimate_of_the_job_it_adds(full: Api) -> None:
    for number in range(3):
        full.submit(f"job-{number}", priority=4)
    answer = full.call("POST", "/add-job", body(), query={"dry_run": "true"}, user=ADA)
    assert answer.json["position"] == 4
    assert answer.json["estimated_start"]["p50"] > full.get("/jobs/job-0").json["estimated_start"]["p50"]
    assert full.reader.job("job1-2026-01-01") is None


def test_nothing_is_said_of_jobs_in_lists(full: Api) -> None:
    full.submit("a")
    assert all("estimated_start" not in job for job in full.get("/jobs").json["jobs"])


@pytest.mark.parametrize("state", ["running", "held", "backing off", "completed", "paused"])
def test_nothing_is_said_of_a_job_that_does_not_wait_its_turn(api: Api, state: str) -> None:
    api.submit("a")
    steps: dict[str, Any] = {
        "running": lambda: api.start("a"),
        "held": lambda: api.call("PATCH", "/jobs/a", {"held": True}),
        "backing off": lambda: api.put_back("a"),
        "completed": lambda: api.end("a", JobState.COMPLETED),
        "paused": lambda: api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN),
    }
    steps[state]()
    assert api.get("/jobs/a").json["estimated_start"] is None


def test_a_job_that_fits_nowhere_any_more_has_no_estimate(api: Api) -> None:
    api.submit("a")
    drained = [{"name": "p5", "capacity": {P5: 0}}, DOCUMENT["pools"][1]]
    api.call("PUT", "/policy", {**DOCUMENT, "pools": drained}, user=ADMIN)
    view = api.get("/jobs/a").json
    assert (view["estimated_start"], view["waiting"]["code"]) == (None, "capacity")


def test_who_asks_for_no_estimate_has_those_ahead_counted_not_read(
    full: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        full.submit(f"job-{number}")
    with_estimate = full.get("/jobs/job-1").json["position"]
    asked: list[dict[str, Any]] = []
    query = full.client.query

    def noted(**call: Any) -> Any:
        asked.append(call)
        return query(**call)

    monkeypatch.setattr(full.client, "query", noted)
    found = full.call("GET", "/jobs/job-1", query={"estimate": "false"}).json
    order = [one for one in asked if one["ExpressionAttributeValues"][":pk"]["S"].startswith("O#")]
    assert [one["Limit"] for one in order if one.get("Select") == "COUNT"] == [MAX_POSITION]
    assert [one["Limit"] for one in order if "Select" not in one] == [FIRST], "those that the planner sees"
    assert found["position"] == with_estimate == 2


def both(api: Api, *names: str) -> dict[str, dict[str, Any]]:
    """The estimates of ``GET /jobs/{name}``, after those of ``GET /estimates`` proved to be the same."""
    alone = {name: api.get(f"/jobs/{name}").json["estimated_start"] for name in names}
    for query in ({}, {"pool": "p5"}):
        entries = api.get("/estimates", **query).json["estimates"]
        listed = {entry["name"]: {key: entry[key] for key in ("p50", "p90")} for entry in entries}
        assert {name: listed[name] for name in names} == alone
    return alone


@pytest.mark.parametrize("half_life", [None, "7d"])
def test_all_answers_agree_until_something_changes(full: Api, half_life: str | None) -> None:
    """Fair share counts what a job that runs has used up to the look: that is no change of the queue."""
    if half_life is not None:
        pools = [
            {**one, "order": {"fair_share": {"half_life": half_life, "weight": 5}}}
            for one in DOCUMENT["pools"]
        ]
        full.call("PUT", "/policy", {**DOCUMENT, "pools": pools}, user=ADMIN)
    names = [f"job-{number}" for number in range(4)]
    for name in names:
        full.submit(name)
    first = both(full, *names)
    for seconds in (1, 59, 240):
        full.now += timedelta(seconds=seconds)
        assert both(full, *names) == first
    full.submit("urgent", priority=9)
    assert both(full, *names) != first
