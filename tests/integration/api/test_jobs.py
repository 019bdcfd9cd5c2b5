"""GET and DELETE /jobs/{name}."""

import pytest
from trainmaster.api import build_api
from trainmaster.core.jobs.model import JobState

from tests.builders import claimed
from tests.integration.api.conftest import ADA, ADMIN, BOB, Api, Racing, Untouchable


def test_a_job_tells_its_story(api: Api) -> None:
    api.submit("a")
    api.end("a", JobState.PREEMPTED)
    view = api.get("/jobs/a").json
    assert (view["state"], view["attempt"], view["preemptions"], view["position"]) == ("preempted", 1, 1, 1)
    assert [attempt["attempt"] for attempt in view["attempts"]] == [0]
    assert view["training_job_name"] == "a"
    assert [(line["from"], line["to"]) for line in view["history"]] == [
        (None, "pending"),
        ("pending", "starting"),
        ("starting", "running"),
        ("running", "preempting"),
        ("preempting", "preempted"),
    ]
    assert view["estimated_start"].keys() == {"p50", "p90"}


def test_the_request_comes_as_it_was_submitted_by_the_name_of_any_attempt_and_only_when_asked(
    api: Api,
) -> None:
    api.submit("a", Environment={"STEPS": "3"})
    again = api.end("a", JobState.PREEMPTED)
    api.change("a", claimed(again, "a-r1-0a1b2c", now=api.now))
    for name in ("a", "a-r1-0a1b2c"):
        asked = api.call("GET", f"/jobs/{name}", query={"request": "true", "estimate": "false"}).json
        assert asked["request"]["TrainingJobName"] == "a"
        assert asked["request"]["Environment"] == {"STEPS": "3"}
        assert asked["estimated_start"] is None
    assert "request" not in api.get("/jobs/a").json


def test_the_request_is_shown_to_its_team_alone(api: Api) -> None:
    api.submit("a")
    assert api.call("GET", "/jobs/a", user=BOB, query={"request": "true"}).status == 404


def test_each_parameter_that_is_neither_true_nor_false_is_named(api: Api) -> None:
    api.submit("a")
    refused = api.call("GET", "/jobs/a", query={"request": "yes", "estimate": "no"})
    assert (refused.status, refused.fields) == (400, ["query.request", "query.estimate"])


def test_a_job_is_found_by_the_name_of_any_attempt(api: Api) -> None:
    api.submit("a")
    again = api.end("a", JobState.PREEMPTED)
    api.change("a", claimed(again, "a-r1-0a1b2c", now=api.now))
    assert api.get("/jobs/a-r1-0a1b2c").json["name"] == "a"
    assert api.call("DELETE", "/jobs/a-r1-0a1b2c").status == 202


def test_a_job_that_backs_off_has_no_position(api: Api) -> None:
    api.submit("a")
    api.put_back("a")
    view = api.get("/jobs/a").json
    assert (view["position"], view["waiting"]["code"]) == (None, "backoff")


def test_a_finished_job_keeps_its_last_attempt(api: Api) -> None:
    api.submit("a")
    api.end("a")
    view = api.get("/jobs/a").json
    assert (view["state"], view["training_job_arn"]) == ("completed", "arn:x")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("%2e%2e", id="G11 an encoded path"),
        pytest.param("..", id="G11 a path"),
        pytest.param("a%2fb", id="G11 an encoded slash"),
        pytest.param("x" * 2000, id="G11 2 kB"),
        pytest.param("a b", id="G11 a space"),
        pytest.param("J#a", id="G11 a key of the table"),
        pytest.param("é", id="G11 another script"),
    ],
)
def test_what_cannot_be_a_name_is_404_without_a_look(api: Api, method: str, name: str) -> None:
    api.handle = build_api(api.outside(reader=Untouchable()))
    answer = api.call(method, f"/jobs/{name}")
    assert answer.status == 404
    assert answer.fields == []


def test_an_attempt_of_a_job_that_was_forgotten_is_not_one_of_its_namesakes(api: Api) -> None:
    api.submit("a")
    again = api.end("a", JobState.PREEMPTED)
    api.change("a", claimed(again, "a-r1-0a1b2c", now=api.now))
    for key in ({"pk": {"S": "J#a"}, "sk": {"S": "job"}}, {"pk": {"S": "N#a"}, "sk": {"S": "alias"}}):
        api.client.delete_item(TableName=api.table, Key=key)  # retention is over
    api.submit("a")
    assert api.get("/jobs/a").status == 200
    assert api.get("/jobs/a-r1-0a1b2c").status == 404


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_G6_another_teams_job_is_404_as_if_it_did_not_exist(api: Api, method: str) -> None:
    api.submit("secret")
    missing = api.call(method, "/jobs/none", user=BOB)
    answer = api.call(method, "/jobs/secret", user=BOB)
    assert answer == missing
    assert api.job("secret").state is JobState.PENDING


def test_an_admin_sees_and_stops_everybodys(api: Api) -> None:
    api.submit("a")
    assert api.get("/jobs/a", user=ADMIN).status == 200
    assert api.call("DELETE", "/jobs/a", user=ADMIN).status == 202


def test_a_waiting_job_is_stopped_at_once(api: Api) -> None:
    api.submit("a")
    answer = api.call("DELETE", "/jobs/a")
    assert answer.status == 202
    assert answer.json["state"] == "stopped"
    assert answer.json["reason"] == {"code": "stopped-by-user", "message": f"stopped by {ADA}"}
    assert api.names() == []


def test_a_running_job_is_stopping_until_sagemaker_has_stopped_it(api: Api) -> None:
    api.submit("a")
    api.start("a")
    api.wake_ups.pools.clear()
    answer = api.call("DELETE", "/jobs/a")
    assert (answer.status, answer.json["state"]) == (202, "stopping")
    assert api.wake_ups.pools == ["p5"]


def test_stopping_twice_changes_nothing(api: Api) -> None:
    api.submit("a")
    api.start("a")
    api.call("DELETE", "/jobs/a")
    before = api.job("a")
    again = api.call("DELETE", "/jobs/a", user=ADMIN)
    assert (again.status, again.json["state"]) == (202, "stopping")
    assert api.job("a") == before


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.STOPPED])
def test_C4_a_job_that_has_ended_is_409_with_its_state(api: Api, state: JobState) -> None:
    api.submit("a")
    api.end("a", state)
    answer = api.call("DELETE", "/jobs/a")
    assert (answer.status, answer.fields) == (409, ["name"])
    assert state.value in answer.json["detail"]


def test_C3_a_cancel_that_loses_a_race_looks_again(api: Api) -> None:
    api.submit("a")
    api.handle = build_api(api.outside(store=Racing(api, 2)))
    assert api.call("DELETE", "/jobs/a").json["state"] == "stopped"


def test_a_cancel_that_always_loses_may_be_tried_again(api: Api) -> None:
    api.submit("a")
    api.handle = build_api(api.outside(store=Racing(api, 99)))
    answer = api.call("DELETE", "/jobs/a")
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_parameters_are_taken(api: Api, method: str) -> None:
    api.submit("a")
    assert api.call(method, "/jobs/a", query={"force": "true"}).fields == ["query.force"]
    assert api.job("a").state is JobState.PENDING
