"""Row D15: the table is restored to an hour ago; SageMaker and the people were an hour further on.

An operator pauses first (``PUT /policy/paused``), lets the reconciler look around, then resumes.
"""

import pytest

from tests.builders import minutes
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


def test_D15_a_submission_the_table_forgot_can_be_sent_again_but_its_training_job_is_nobodys(
    world: World,
) -> None:
    """Its request is lost with the table. It is neither stopped nor taken for another job of the name."""
    hour_ago = world.items()
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    world.put_back(hour_ago)
    resumed(world)
    assert world.api("GET", "/jobs/job1")["status"] == 404
    assert world.sagemaker.jobs["job1"].status == "InProgress"
    assert world.submit("job1")["status"] == 201
    world.schedule()
    assert (world.states("job1"), code_of(world, "job1")) == (["failed"], "name-taken")
    assert world.sagemaker.jobs["job1"].stops == 0
