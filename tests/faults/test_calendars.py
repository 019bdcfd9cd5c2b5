"""Calendars on a plane at work: what is stopped at a lowering comes back, and nothing is lost meanwhile."""

from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState

from tests.builders import NOON, A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.world import Crash, World

ONE_AT = {"every": "Mon 13:00-15:00", "capacity": {A: 1}}
"""From an hour after NOON, a Monday, on."""


def lowered(**entry: Any) -> dict[str, Any]:
    return {"pools": [{"name": "main", "capacity": {A: 2}, "calendar": [ONE_AT | entry]}]}


def later(world: World, hours: float) -> None:
    """The clock goes on; ``reconcile`` wakes the pools, as each minute."""
    world.now = NOON + minutes(60 * hours)
    world.reconcile()
    world.schedule()


@pytest.fixture
def busy(new_world: NewWorld) -> World:
    """job1 (p=1) and job2 (p=2) train on both instances."""
    world = new_world(lowered())
    for number in (1, 2):
        world.submit(f"job{number}", priority=number, StoppingCondition={"MaxRuntimeInSeconds": 86_400})
    world.schedule()
    trains(world, "job1", "job2")
    return world


def test_at_a_lowering_the_lowest_is_stopped_and_comes_back_when_there_is_room(busy: World) -> None:
    later(busy, 0.9)
    assert busy.states("job1", "job2") == ["running", "running"]
    later(busy, 1)
    assert busy.states("job1", "job2") == ["preempting", "running"]
    ends(busy, "job1", "Stopped")
    job = busy.job("job1")
    assert (job.state, job.attempt, job.preemptions) == (JobState.PREEMPTED, 1, 0), "it is not charged"
    view = busy.api("GET", "/jobs/job1")
    reasons = [attempt["reason"] for attempt in view["attempts"] if attempt["reason"]]
    assert [(reason["code"], reason["message"]) for reason in reasons] == [
        ("window", "the calendar lowered the pool to ml.a.xlarge=1")
    ]
    assert code_of(busy, "job1") == "capacity"
    later(busy, 3)
    assert busy.states("job1") == ["running"]
    busy.check("job1", "job2")


def test_a_job_too_wide_for_now_is_told_until_when_and_is_not_refused(new_world: NewWorld) -> None:
    world = new_world(lowered())
    later(world, 1.5)
    world.submit("wide", ResourceConfig={"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 1})
    world.schedule()
    view = world.api("GET", "/jobs/wide")
    assert view["waiting"]["code"] == "window"
    assert view["waiting"]["message"].endswith("the calendar leaves ml.a.xlarge=1 until 2026-11-02 15:00 UTC")
    later(world, 3)
    assert world.states("wide") == ["running"]


def test_a_lowering_that_waits_stops_nobody(new_world: NewWorld) -> None:
    world = new_world(lowered(when_lowered="wait"))
    for name in ("job1", "job2"):
        world.submit(name, StoppingCondition={"MaxRuntimeInSeconds": 600})
    world.schedule()
    trains(world, "job1", "job2")
    later(world, 1.5)
    assert world.states("job1", "job2") == ["running", "running"]


def test_the_pools_and_the_history_have_the_capacity_in_force_and_what_comes(busy: World) -> None:
    (pool,) = busy.api("GET", "/pools")["pools"]
    assert pool["capacity"] == {A: 2}
    assert pool["calendar"][0] == {"at": "2026-11-02T13:00:00.000Z", "capacity": {A: 1}}
    later(busy, 1)
    (pool,) = busy.api("GET", "/pools")["pools"]
    assert pool["capacity"] == {A: 1}
    later(busy, 1 + 1 / 60)
    timeline = busy.api(
        "GET", "/timeline", query={"from": "2026-11-02T12:30:00Z", "to": "2026-11-02T13:02:00Z"}
    )
    assert [(row["at"], row["capacity"]) for row in timeline["capacity"]][1:] == [
        ("2026-11-02T13:00:00.000Z", {A: 1})
    ]


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_crash_at_the_stop_is_made_good_by_the_next_pass(busy: World, phase: str) -> None:
    busy.now = NOON + minutes(60)
    busy.reconcile()
    assert busy.dies(busy.schedule, Crash("StopTrainingJob", phase))
    busy.now += minutes(2)
    busy.reconcile()
    busy.schedule()
    assert busy.states("job1", "job2") == ["preempting", "running"]
    ends(busy, "job1", "Stopped")
    assert busy.job("job1").state is JobState.PREEMPTED


def test_a_zone_that_there_is_not_is_refused_by_field(busy: World) -> None:
    document = lowered(timezone="Europe/Atlantis")
    answer = busy.api("PUT", "/policy", document)
    assert answer["status"] == 422
    (error,) = answer["errors"]
    assert error["field"] == "pools[0].calendar[0].timezone"
    assert "Atlantis" in error["message"]
    many = {"every": "daily 00:00-00:01", "capacity": {A: 0}}
    entries = [many | {"every": f"daily {hour:02}:00-{hour:02}:30"} for hour in range(24)]
    document["pools"][0]["calendar"] = entries
    (error,) = busy.api("PUT", "/policy", document)["errors"]
    assert (error["field"], error["hint"]) == ("pools[0].calendar", "write at most 400 changes")
