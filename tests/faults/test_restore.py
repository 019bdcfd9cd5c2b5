"""Row D15: the table is restored to an hour ago; SageMaker and the people were an hour further on.

An operator pauses first (``PUT /policy/paused``), lets the reconciler look around, then resumes.
"""

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.world import World


def resumed(world: World) -> None:
    """Two minutes of looking around with starts and preemptions paused, then on."""
    world.api("PUT", "/policy/paused", {"paused": True})
    for _ in range(2):
        world.a_minute_passes()
    world.api("PUT", "/policy/paused", {"paused": False})
    world.schedule()


def test_D15_a_job_that_waited_then_and_trains_now_is_adopted_not_started_twice(world: World) -> None:
    world.submit("job1")
    hour_ago = world.items()
    world.schedule()
    trains(world, "job1")
    world.now += minutes(60)
    world.put_back(hour_ago)
    assert world.states("job1") == ["pending"]
    resumed(world)
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]
    world.check("job1")


def test_D15_a_job_that_trained_then_and_has_ended_since_ends_again(busy: World) -> None:
    hour_ago = busy.items()
    ends(busy, "job1")
    busy.now += minutes(60)
    busy.put_back(hour_ago)
    resumed(busy)
    assert busy.states("job1", "job2") == ["completed", "running"]
    busy.check("job1", "job2")


def test_D15_a_job_that_waited_then_and_has_ended_since_is_not_run_again(world: World) -> None:
    world.submit("job1")
    hour_ago = world.items()
    world.schedule()
    trains(world, "job1")
    ends(world, "job1")
    world.put_back(hour_ago)
    resumed(world)
    world.reconcile()
    assert world.states("job1") == ["completed"]
    assert world.sagemaker.creates == ["job1"]


@pytest.mark.parametrize("again", [1, 2])
def test_D15_a_job_whose_later_attempt_trains_now_is_found_there(again: int, busy: World) -> None:
    """The attempt the table knows was stopped by us, which the table has forgotten."""
    hour_ago = busy.items()
    for number in range(again):
        urgent = f"urgent{number}"
        busy.submit(urgent, priority=9)
        busy.schedule()
        live = busy.job("job1").live
        assert live is not None
        ends(busy, live.training_job_name, "Stopped")
        trains(busy, urgent)
        ends(busy, urgent)
    assert (busy.states("job1"), busy.job("job1").attempt) == (["running"], again)
    latest = busy.sagemaker.creates[-1]
    trains(busy, latest)
    busy.put_back(hour_ago)
    created = list(busy.sagemaker.creates)
    resumed(busy)
    for _ in range(again):
        busy.a_minute_passes()
        busy.now += minutes(10)
    busy.schedule()
    live = busy.job("job1").live
    assert live is not None
    assert live.training_job_name == latest
    assert busy.sagemaker.creates == created
    busy.check("job1", "job2")


def test_D15_a_job_stopped_in_the_console_is_still_final(busy: World) -> None:
    hour_ago = busy.items()
    ends(busy, "job1", "Stopped")
    busy.put_back(hour_ago)
    resumed(busy)
    assert (busy.states("job1"), code_of(busy, "job1")) == (["stopped"], "stopped-outside")


def sweep(world: World) -> None:
    """``reconcile`` runs each minute, and sweeps in every fifth."""
    for _ in range(5):
        world.now += minutes(1)
        world.reconcile()


def forgotten(world: World, name: str = "job1") -> None:
    """Submitted and started after the instant that the table is restored to."""
    hour_ago = world.items()
    world.submit(name)
    world.schedule()
    trains(world, name)
    world.put_back(hour_ago)
    world.api("PUT", "/policy/paused", {"paused": True})


def test_D15_a_submission_the_table_forgot_is_adopted_and_counted(world: World) -> None:
    forgotten(world)
    sweep(world)
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]
    assert world.sagemaker.jobs["job1"].stops == 0
    world.check("job1")


def test_D15_a_submission_the_table_forgot_is_the_same_job_when_it_is_sent_again(world: World) -> None:
    forgotten(world)
    sweep(world)
    assert world.submit("job1")["status"] == 200
    assert world.submit("job1", priority=7)["status"] == 409
    world.api("PUT", "/policy/paused", {"paused": False})
    world.schedule()
    ends(world, "job1")
    assert (world.states("job1"), world.sagemaker.creates) == (["completed"], ["job1"])
    world.check("job1")


@pytest.mark.parametrize("then", ["allow", "stop"])
def test_D15_what_came_through_the_queue_is_adopted_whatever_becomes_of_others(
    then: str, new_world: NewWorld
) -> None:
    document = {"pools": [{"name": "main", "capacity": {A: 2}}], "unmanaged_jobs": {"then": then}}
    world = new_world(document)
    forgotten(world)
    sweep(world)
    assert (world.states("job1"), world.sagemaker.jobs["job1"].stops) == (["running"], 0)


@pytest.mark.parametrize("name", ["job1", "j" * 63])
def test_D15_the_later_attempt_of_a_job_the_table_knows_is_not_a_job_of_its_own(
    name: str, world: World
) -> None:
    world.submit(name)
    world.schedule()
    trains(world, name)
    hour_ago = world.items()
    ends(world, name, "Failed", reason="CapacityError: none")
    world.a_minute_passes()
    world.now += minutes(15)
    world.reconcile()
    world.schedule()
    (_, again) = world.sagemaker.creates
    trains(world, again)
    world.put_back(hour_ago)
    world.tell(again)
    sweep(world)
    world.schedule()
    assert world.wiring.reader.job(again) is None
    assert world.sagemaker.creates == [name, again]


def test_D15_a_later_attempt_of_a_job_the_table_forgot_is_adopted_under_its_own_name(world: World) -> None:
    hour_ago = world.items()
    world.submit("job1")
    world.schedule()
    ends(world, "job1", "Failed", reason="CapacityError: none")
    world.a_minute_passes()
    world.now += minutes(15)
    world.reconcile()
    world.schedule()
    (_, again) = world.sagemaker.creates
    world.put_back(hour_ago)
    sweep(world)
    assert world.states(again) == ["running"]
    world.check(again)
