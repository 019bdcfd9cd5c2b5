"""Reservations on a plane at work: what others hold is stopped at the instant, and comes back."""

from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.faults.test_calendars import later
from tests.integration.messages import USER
from tests.integration.world import Crash, World

TEAMS = [{"name": name, "principals": [USER], "roles": "any"} for name in ("red", "blue")]
FIXED = {"Key": "trainmaster:preemptible", "Value": "false"}
AT_ONE = {
    "name": "demo-day",
    "team": "blue",
    "from": "2026-11-02T13:00Z",
    "to": "2026-11-02T15:00Z",
    "instances": {A: 1},
}


def document(*reservations: dict[str, Any], **pool: Any) -> dict[str, Any]:
    keys = {"name": "main", "capacity": {A: 2}, "reservations": list(reservations)} | pool
    return {"pools": [keys], "teams": TEAMS}


def submit(world: World, name: str, team: str, *tags: dict[str, str]) -> None:
    all_tags = [{"Key": "team", "Value": team}, *tags]
    answer = world.submit(name, Tags=all_tags, StoppingCondition={"MaxRuntimeInSeconds": 86_400})
    assert answer["status"] == 201, answer


@pytest.fixture
def busy(new_world: NewWorld) -> World:
    """Two jobs of red train on both instances; from one o'clock on one of these is blue's for two hours."""
    world = new_world(document(AT_ONE))
    submit(world, "low", "red")
    submit(world, "high", "red")
    world.api("PATCH", "/jobs/high", {"priority": 5})
    world.schedule()
    trains(world, "low", "high")
    return world


def test_at_its_beginning_the_lowest_of_others_is_stopped_and_the_team_alone_starts(busy: World) -> None:
    later(busy, 0.9)
    submit(busy, "next", "red")
    submit(busy, "demo", "blue")
    busy.schedule()
    assert busy.states("low", "high", "next", "demo") == ["running", "running", "pending", "pending"]
    later(busy, 1)
    assert busy.states("low", "high", "demo") == ["preempting", "running", "pending"]
    ends(busy, "low", "Stopped")
    job = busy.job("low")
    assert (job.state, job.attempt, job.preemptions) == (JobState.PREEMPTED, 1, 0), "it is not charged"
    (reason,) = [each["reason"] for each in busy.api("GET", "/jobs/low")["attempts"] if each["reason"]]
    assert reason["code"] == "window"
    assert reason["message"] == (
        "reservation demo-day keeps ml.a.xlarge=1 for team blue until 2026-11-02 15:00 UTC"
    )
    assert busy.states("demo", "next", "low") == ["running", "pending", "preempted"]
    trains(busy, "demo")
    ends(busy, "demo")
    assert busy.states("next", "low") == ["pending", "preempted"], "what comes free is blue's until three"
    assert {code_of(busy, "low"), code_of(busy, "next")} <= {"window", "ahead"}
    assert "window" in {code_of(busy, "low"), code_of(busy, "next")}
    later(busy, 3)
    assert sorted(busy.states("next", "low")) in (["pending", "running"], ["preempted", "running"])
    busy.check("low", "high", "next", "demo")


def test_before_it_a_job_that_would_be_in_its_way_waits_and_is_told_for_what(new_world: NewWorld) -> None:
    world = new_world(document(AT_ONE))
    submit(world, "first", "red", FIXED)
    submit(world, "second", "red", FIXED)
    world.schedule()
    assert sorted(world.states("first", "second")) == ["pending", "running"]
    (waits,) = [name for name in ("first", "second") if world.states(name) == ["pending"]]
    view = world.api("GET", f"/jobs/{waits}")
    assert view["waiting"]["code"] == "window"
    assert "from 2026-11-02 13:00 UTC on reservation demo-day keeps" in view["waiting"]["message"]


def test_the_pools_show_what_is_reserved_and_the_calendar_only_capacities(busy: World) -> None:
    (pool,) = busy.api("GET", "/pools")["pools"]
    assert pool["reservations"] == [
        {
            "name": "demo-day",
            "team": "blue",
            "from": "2026-11-02T13:00:00.000Z",
            "to": "2026-11-02T15:00:00.000Z",
            "instances": {A: 1},
        }
    ]
    assert "calendar" not in pool
    window = {"from": "2026-11-02T11:00:00Z", "to": "2026-11-02T12:00:00Z"}
    assert busy.api("GET", "/timeline", query=window)["ahead"] == [
        {
            "at": "2026-11-02T13:00:00.000Z",
            "pool": "main",
            "capacity": {A: 2},
            "reserved": {"blue": {A: 1}},
        },
        {"at": "2026-11-02T15:00:00.000Z", "pool": "main", "capacity": {A: 2}, "reserved": {}},
    ]
    past = {"from": "2026-11-02T10:00:00Z", "to": "2026-11-02T11:00:00Z"}
    assert "ahead" not in busy.api("GET", "/timeline", query=past)
    later(busy, 3)
    (pool,) = busy.api("GET", "/pools")["pools"]
    assert pool["reservations"] == []
    timeline = busy.api(
        "GET", "/timeline", query={"from": "2026-11-02T12:30:00Z", "to": "2026-11-02T15:02:00Z"}
    )
    assert len(timeline["capacity"]) == 1, "the capacity is what it was"


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_crash_at_the_stop_is_made_good_by_the_next_pass(busy: World, phase: str) -> None:
    later(busy, 0.99)
    busy.now += minutes(1)
    busy.reconcile()
    assert busy.dies(busy.schedule, Crash("StopTrainingJob", phase))
    busy.now += minutes(2)
    busy.reconcile()
    busy.schedule()
    assert busy.states("low", "high") == ["preempting", "running"]
    ends(busy, "low", "Stopped")
    assert busy.job("low").state is JobState.PREEMPTED


def test_a_dry_run_says_what_changes_when_and_whom_it_would_stop(busy: World) -> None:
    longer = AT_ONE | {"instances": {A: 2}}
    calendar = [{"every": "Sat 08:00-10:00", "capacity": {A: 0}}]
    answer = busy.api("PUT", "/policy", document(longer, calendar=calendar), query={"dry_run": "true"})
    assert answer["status"] == 200
    assert [(view["at"], view["stops"]) for view in answer["by_the_clock"]] == [
        ("2026-11-02T13:00:00.000Z", ["low", "high"]),
        ("2026-11-02T15:00:00.000Z", []),
        ("2026-11-07T08:00:00.000Z", []),
        ("2026-11-07T10:00:00.000Z", []),
    ]
    first, *_, lowered, _ = answer["by_the_clock"]
    assert (first["pool"], first["begins"], first["capacity"]) == ("main", ["demo-day"], {})
    assert lowered["message"] == "Sat 2026-11-07 08:00 UTC: ml.a.xlarge 2 -> 0"
    assert busy.api("GET", "/policy")["policy"]["pools"][0]["reservations"] == [AT_ONE], "nothing is put"
    plain = busy.api("PUT", "/policy", document(), query={"dry_run": "true"})
    assert "by_the_clock" not in plain


def test_Q7_a_put_of_more_than_there_is_changes_nothing(busy: World) -> None:
    answer = busy.api("PUT", "/policy", document(AT_ONE | {"instances": {A: 3}}))
    assert answer["status"] == 422
    (error,) = answer["errors"]
    assert error["field"] == f"pools[0].reservations[0].instances.{A}"
    assert "from 2026-11-02T13:00Z to 2026-11-02T15:00Z" in error["message"]
    assert busy.api("GET", "/policy")["policy"]["pools"][0]["reservations"] == [AT_ONE]
