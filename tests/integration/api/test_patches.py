"""PATCH /jobs/{name}."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import JobState, epoch_ms
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps

from tests.builders import NOON, claimed
from tests.integration.api.conftest import ADA, ADMIN, BOB, DOCUMENT, P5, Api, Racing

DAY_MS = 24 * 60 * 60 * 1000
"""What a point of priority is worth by default."""


def patch(api: Api, name: str, content: Any, *, user: str = ADA) -> Any:
    return api.call("PATCH", f"/jobs/{name}", content, user=user)


def history(api: Api, name: str) -> list[tuple[str | None, str, Any]]:
    return [(line["from"], line["to"], line["reason"]) for line in api.get(f"/jobs/{name}").json["history"]]


def test_a_waiting_job_goes_ahead_with_a_higher_priority(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.submit(name, priority=1)
    api.wake_ups.pools.clear()
    answer = patch(api, "c", {"priority": 2})
    assert answer.status == 200
    assert (answer.json["name"], answer.json["priority"], answer.json["position"]) == ("c", 2, 1)
    assert api.names() == ["c", "a", "b"]
    assert api.job("c").score == epoch_ms(NOON) - 2 * DAY_MS
    assert api.wake_ups.pools == ["p5"]


def test_the_answer_gives_the_reason_of_the_new_turn(api: Api) -> None:
    for name in ("one", "two", "a", "b"):
        api.submit(name, priority=1)
    for name in ("one", "two"):
        api.start(name)
    stale = Reason(code=ReasonCode.AHEAD, message="a is ahead")
    api.change("b", steps.explained(api.job("b"), stale))
    assert patch(api, "b", {"priority": 2}).json["waiting"]["message"] == (
        f"one is stopping to make room for {P5}=1"
    )


def test_the_history_says_who_changed_the_priority_from_what_to_what(api: Api) -> None:
    api.submit("a", priority=1)
    patch(api, "a", {"priority": 7}, user=ADMIN)
    assert history(api, "a")[1:] == [
        (
            "pending",
            "pending",
            {"code": "priority", "message": f"priority 1 became 7 by {ADMIN}"},
        )
    ]


def test_C5_a_running_job_is_rekeyed_where_it_runs(api: Api) -> None:
    api.submit("a", priority=1)
    api.start("a")
    assert patch(api, "a", {"priority": 9}).json["state"] == "running"
    (entry,) = api.reader.running("p5")
    assert (entry.priority, entry.score) == (9, epoch_ms(NOON) - 9 * DAY_MS)
    assert api.reader.waiting("p5", after=None, limit=9) == ()


def test_C5_a_job_that_is_claimed_meanwhile_is_rekeyed_where_it_is_then(api: Api) -> None:
    api.submit("a", priority=1)

    def start() -> None:
        api.change("a", claimed(api.job("a"), "a", now=api.now))

    api.handle = build_api(api.outside(store=Racing(api, 1, meanwhile=start)))
    assert patch(api, "a", {"priority": 9}).json["state"] == "starting"
    (entry,) = api.reader.running("p5")
    assert (entry.name, entry.priority) == ("a", 9)
    assert api.reader.waiting("p5", after=None, limit=9) == ()


def test_a_change_that_always_loses_may_be_tried_again(api: Api) -> None:
    api.submit("a", priority=1)
    api.handle = build_api(api.outside(store=Racing(api, 99)))
    answer = patch(api, "a", {"priority": 2})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
    assert api.job("a").priority == 1


def test_the_ceiling_of_the_team_counts_for_admins_too(api: Api) -> None:
    api.submit("a", priority=1)
    answer = patch(api, "a", {"priority": 501}, user=ADMIN)
    assert (answer.status, answer.fields) == (422, ["priority"])
    assert answer.json["errors"][0] == {
        "field": "priority",
        "message": "priority 501 is above the ceiling of team vision, 500",
        "hint": "ask for at most 500",
        "rule": "max-priority",
    }
    assert api.job("a").priority == 1


def test_a_job_above_a_ceiling_that_was_lowered_can_still_be_held(api: Api) -> None:
    api.submit("a", priority=500)
    lowered = copy.deepcopy(DOCUMENT)
    lowered["teams"][0]["max_priority"] = 5
    assert api.call("PUT", "/policy", lowered, user=ADMIN).status == 200
    assert patch(api, "a", {"held": True}).status == 200


def test_a_held_job_has_no_turn_and_says_by_whom_and_since_when(api: Api) -> None:
    api.submit("a")
    api.submit("b")
    view = patch(api, "a", {"held": True}).json
    assert (view["state"], view["position"]) == ("held", None)
    assert view["waiting"] == {"code": "held", "message": f"held by {ADA} since 2026-11-02T12:00:00.000Z"}
    assert api.get("/jobs/b").json["position"] == 1
    assert api.get("/jobs/a").json["waiting"] == view["waiting"]
    assert [entry.name for entry in api.reader.waiting("p5", after=None, limit=9)] == ["b"]
    assert history(api, "a")[-1] == ("pending", "held", {"code": "held", "message": f"held by {ADA}"})


def test_a_released_job_has_its_old_turn(api: Api) -> None:
    api.submit("a")
    api.submit("b")
    patch(api, "a", {"held": True})
    api.now += timedelta(hours=1)
    view = patch(api, "a", {"held": False}, user=ADMIN).json
    assert (view["state"], view["position"]) == ("pending", 1)
    released = {"code": "released", "message": f"released by {ADMIN}"}
    assert history(api, "a")[-1] == ("held", "pending", released)


def test_a_job_that_was_preempted_is_so_again_after_its_release(api: Api) -> None:
    api.submit("a")
    api.end("a", JobState.PREEMPTED)
    patch(api, "a", {"held": True})
    assert patch(api, "a", {"held": False}).json["state"] == "preempted"


def test_holding_ends_a_backoff(api: Api) -> None:
    api.submit("a")
    api.put_back("a")
    patch(api, "a", {"held": True})
    assert patch(api, "a", {"held": False}).json["position"] == 1


def test_priority_and_hold_in_one_call(api: Api) -> None:
    api.submit("a", priority=1)
    patch(api, "a", {"held": True, "priority": 4})
    job = api.job("a")
    assert (job.state, job.priority) == (JobState.HELD, 4)
    both = {"code": "held", "message": f"held by {ADA}; priority 1 became 4 by {ADA}"}
    assert history(api, "a")[-1] == ("pending", "held", both)


@pytest.mark.parametrize("content", [{"priority": 0}, {"held": False}, {"priority": 0, "held": False}])
def test_a_job_that_is_as_wanted_is_not_written(api: Api, content: Any) -> None:
    api.submit("a")
    before = api.job("a")
    assert patch(api, "a", content).status == 200
    assert api.job("a") == before


@pytest.mark.parametrize("state", ["starting", "running", "preempting", "stopping"])
def test_what_runs_cannot_be_held(api: Api, state: str) -> None:
    api.submit("a")
    if state == "starting":
        api.change("a", claimed(api.job("a"), "a", now=api.now))
    else:
        api.start("a")
    if state == "preempting":
        api.preempt("a")
    if state == "stopping":
        api.call("DELETE", "/jobs/a")
    answer = patch(api, "a", {"held": True, "priority": 3})
    assert (answer.status, answer.fields) == (409, ["held"])
    assert state in answer.json["detail"]
    assert (api.job("a").state, api.job("a").priority) == (JobState(state), 0)


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.STOPPED])
@pytest.mark.parametrize("content", [{"priority": 3}, {"held": True}, {"held": False}])
def test_a_job_that_has_ended_is_409(api: Api, state: JobState, content: Any) -> None:
    api.submit("a")
    api.end("a", state)
    answer = patch(api, "a", content)
    assert (answer.status, answer.fields) == (409, ["name"])
    assert state.value in answer.json["detail"]


def test_G6_another_teams_job_is_404(api: Api) -> None:
    api.submit("a")
    assert patch(api, "a", {"priority": 3}, user=BOB).status == 404
    assert api.job("a").priority == 0


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        pytest.param({}, ["priority"], id="nothing"),
        pytest.param({"priority": -1}, ["priority"], id="negative"),
        pytest.param({"priority": 1001}, ["priority"], id="too high"),
        pytest.param({"priority": 2**63}, ["priority"], id="F1 2^63"),
        pytest.param({"priority": 1.0}, ["priority"], id="F1 float"),
        pytest.param({"priority": True}, ["priority"], id="F1 bool"),
        pytest.param({"priority": "1"}, ["priority"], id="F1 text"),
        pytest.param({"priority": None}, ["priority"], id="null"),
        pytest.param({"held": 1}, ["held"], id="a number for held"),
        pytest.param({"held": None}, ["held"], id="null for held"),
        pytest.param({"priority": 1, "team": "x"}, ["team"], id="something else"),
        pytest.param({"priority": "x", "held": "x", "y": 1}, ["y", "priority", "held"], id="all at once"),
    ],
)
def test_what_is_no_change_is_400(api: Api, content: Any, fields: list[str]) -> None:
    api.submit("a")
    answer = patch(api, "a", content)
    assert (answer.status, answer.fields) == (400, fields)
    assert (api.job("a").state, api.job("a").priority) == (JobState.PENDING, 0)


@pytest.mark.parametrize(
    "content", [None, "", "[]", "{", '{"priority": 1, "priority": 2}', '{"priority": NaN}']
)
def test_a_body_that_is_no_object_is_400(api: Api, content: Any) -> None:
    api.submit("a")
    assert patch(api, "a", content).status == 400


def test_counters_stay_right_whatever_is_patched(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.submit(name)
    patch(api, "a", {"held": True})
    patch(api, "b", {"priority": 3})
    api.start("c")
    patch(api, "c", {"priority": 3})
    state = api.reader.pool_state("p5")
    assert (state.used, state.teams["vision"].waiting) == ({P5: 1}, 2)
    patch(api, "a", {"held": False})
    assert api.reader.queue_length("p5") == 2
