"""Jobs that wait for others, over HTTP: what is refused and why, what is shown, when they may start."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps

from tests.builders import NOON
from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, Answer, Api

WHY = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped")


def after(api: Api, name: str, value: str, **more: Any) -> Answer:
    tags = {"trainmaster:after": value, **more.pop("tags", {})}
    return api.submit(name, tags=tags, **more)


def end(api: Api, name: str) -> None:
    api.change(name, steps.cancelled(api.job(name), reason=WHY, now=api.now))


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        pytest.param("afterrok:a", 'has "afterrok"', "did you mean afterok?", id="a typo of a type"),
        pytest.param("after:a", 'has "after"', "use one of afterok, afterany, afternotok", id="another type"),
        pytest.param("aftercorr:a", "is no array", "", id="a type between arrays"),
        pytest.param("afterok:", "names no job", "[TYPE:]JOB", id="no job"),
        pytest.param("a  b", "names no job", "one space between two", id="two spaces"),
        pytest.param(
            "afterok:a:b", 'has "afterok:a"', "one space between two", id="two jobs in one condition"
        ),
        pytest.param("nobody", 'no such job: "nobody"', "of your teams", id="no such job"),
        pytest.param("child", "wait for itself", "another job", id="the job itself"),
        pytest.param("a afterany:a", "names job a twice", "one condition for each", id="one job twice"),
    ],
)
def test_a_condition_that_says_nothing_is_a_400_with_a_hint(
    api: Api, value: str, message: str, hint: str
) -> None:
    api.submit("a")
    answer = after(api, "child", value)
    assert answer.status == 400
    (error,) = answer.json["errors"]
    assert error["field"] == "Tags[0].Value"
    assert message in error["message"]
    assert hint in error["hint"]
    assert api.reader.job("child") is None


def test_after_failed_is_stop_or_hold(api: Api) -> None:
    api.submit("a")
    answer = after(api, "child", "a", tags={"trainmaster:after-failed": "wait"})
    assert (answer.status, answer.fields) == (400, ["Tags[1].Value"])


def test_P3_a_job_of_another_team_is_no_such_job(api: Api) -> None:
    api.submit("a")
    answer = after(api, "child", "a", user=BOB)
    assert (answer.status, answer.json["errors"][0]["message"]) == (400, 'no such job: "a"')
    assert after(api, "child", "a", user=BOTH, tags={"team": "speech"}).status == 201


def test_a_parent_of_another_team_has_no_name_for_those_who_may_not_see_it(api: Api) -> None:
    api.submit("a")
    after(api, "child", "a", user=BOTH, tags={"team": "speech"})
    view = api.get("/jobs/child", user=BOB).json
    assert view["after"] == [{"job": None, "type": "afterok", "state": "pending"}]
    assert "a job of team vision" in view["waiting"]["message"]
    assert api.get("/jobs/child", user=ADMIN).json["after"][0]["job"] == "a"
    parent = api.get("/jobs/a").json
    assert (parent["dependents"], parent["dependents_count"]) == ([], 1)


def test_conditions_are_refused_together_with_all_else_that_is_wrong(api: Api) -> None:
    api.submit("a")
    end(api, "a")
    answer = after(api, "child", "afterok:a", priority=501)
    assert answer.status == 422
    assert {error["rule"] for error in answer.json["errors"]} == {"max-priority", "dependency"}
    dry = api.call(
        "POST",
        "/add-job",
        {**request_of(api, "child"), "Tags": [{"Key": "trainmaster:after", "Value": "a"}]},
        query={"dry_run": "true"},
    )
    assert (dry.status, dry.json["valid"]) == (200, False)
    assert [error["rule"] for error in dry.json["violations"]] == ["dependency"]


def request_of(api: Api, name: str) -> dict[str, Any]:
    return {**api.reader.request("a"), "TrainingJobName": name}


def test_more_parents_than_the_pool_allows_are_a_422_that_names_the_number(api: Api) -> None:
    names = [f"p{number}" for number in range(21)]
    for name in names:
        api.submit(name)
    answer = after(api, "child", " ".join(names))
    assert answer.status == 422
    (error,) = answer.json["errors"]
    assert error["rule"] == "limits.max_parents"
    assert "21" in error["message"]
    assert "20" in error["message"]
    assert after(api, "child", " ".join(names[:20])).status == 201


def test_conditions_of_several_tags_count_together_and_any_attempts_name_will_do(api: Api) -> None:
    for name in ("a", "b"):
        api.submit(name)
    answer = after(api, "child", "a", tags={"trainmaster:after.2": "afterany:b"})
    assert [one["job"] for one in answer.json["job"]["after"]] == ["a", "b"]
    assert answer.json["job"]["waiting"]["message"] == (
        "waits for afterok:a, which is pending; afterany:b, which is pending"
    )


def test_the_same_request_again_gets_the_job_although_its_parent_has_failed(api: Api) -> None:
    api.submit("a")
    first = after(api, "child", "a")
    end(api, "a")
    again = after(api, "child", "a")
    assert (first.status, again.status) == (201, 200)


def test_a_list_shows_the_states_of_parents(api: Api) -> None:
    api.submit("a")
    after(api, "child", "a")
    listed = {view["name"]: view for view in api.get("/jobs").json["jobs"]}
    assert listed["child"]["after"] == [{"job": "a", "type": "afterok", "state": "pending"}]
    assert listed["child"]["waiting"]["code"] == "dependency"
    assert (listed["a"]["after"], listed["a"]["eligible_at"]) == ([], "2026-11-02T12:00:00.000Z")


def test_the_start_of_a_child_is_estimated_behind_the_end_of_its_parents(api: Api) -> None:
    api.submit("a")
    api.start("a")
    after(api, "child", "a")
    after(api, "grandchild", "child")
    views = {name: api.get(f"/jobs/{name}").json for name in ("child", "grandchild")}
    starts = {name: datetime.fromisoformat(view["estimated_start"]["p50"]) for name, view in views.items()}
    assert NOON < starts["child"] <= NOON + timedelta(hours=2)
    assert starts["child"] < starts["grandchild"]
    assert "afterok:a, which is" in views["child"]["waiting"]["message"]
    assert "and likely ends 2026-11-02" in views["child"]["waiting"]["message"]
    brief = api.get("/jobs/child", estimate="false").json
    assert "likely ends" not in brief["waiting"]["message"]


def test_a_held_parent_has_no_likely_end_and_that_is_said(api: Api) -> None:
    api.submit("a")
    after(api, "child", "a")
    held = api.call("PATCH", "/jobs/a", {"held": True})
    assert held.json["dependents_count"] == 1
    view = api.get("/jobs/child").json
    assert view["estimated_start"] is None
    assert "jobs that it waits for" in view["estimate_note"]
    assert "which is held" in view["waiting"]["message"]


def test_a_cancel_says_how_many_jobs_follow(api: Api) -> None:
    api.submit("a")
    after(api, "child", "afterany:a")
    assert api.call("DELETE", "/jobs/a").json["dependents_count"] == 1
    assert api.call("DELETE", "/jobs/child").json["dependents_count"] == 0


@pytest.mark.parametrize("value", [7, ["a"], True, "", "afterrok:a"])
def test_a_patch_that_is_no_condition_is_a_400(api: Api, value: object) -> None:
    api.submit("a")
    after(api, "child", "a")
    answer = api.call("PATCH", "/jobs/child", {"after": value})
    assert (answer.status, answer.fields) == (400, ["after"])


def test_a_patch_to_the_same_conditions_writes_nothing(api: Api) -> None:
    api.submit("a")
    after(api, "child", "a")
    before = api.job("child")
    assert api.call("PATCH", "/jobs/child", {"after": "afterok:a"}).status == 200
    assert api.job("child") == before
    assert api.reader.graph_version() == 0


def test_the_history_says_who_changed_the_conditions(api: Api) -> None:
    for name in ("a", "b"):
        api.submit(name)
    after(api, "child", "a")
    answer = api.call("PATCH", "/jobs/child", {"after": "afterany:b", "priority": 7})
    assert [one["job"] for one in answer.json["after"]] == ["b"]
    (line,) = api.get("/jobs/child").json["history"][1:]
    assert line["reason"]["message"] == (
        f"conditions became afterany:b by {ADA}; priority 0 became 7 by {ADA}"
    )


def test_a_patch_of_conditions_of_a_job_that_waits_for_nobody_is_a_409(api: Api) -> None:
    api.submit("a")
    api.submit("b")
    answer = api.call("PATCH", "/jobs/b", {"after": "a"})
    assert (answer.status, answer.fields) == (409, ["after"])
