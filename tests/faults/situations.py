"""What is going on when a handler comes to work, and what sets it going."""

from typing import Any

from tests.builders import A, B, minutes
from tests.faults.alarming import alarms, goes, gpu_hosts, hears_of, idle_alarm
from tests.faults.scenes import trains
from tests.integration.world import Crash, World

ON_SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
}


def accepted(world: World, name: str, **fields: Any) -> None:
    assert world.submit(name, **fields)["status"] in (200, 201)


def waits(world: World) -> None:
    accepted(world, "job1")


def refused(world: World) -> None:
    accepted(world, "job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)] * 9


def three_are_refused(world: World) -> None:
    """For a right that everybody lacks."""
    for number in range(1, 5):
        accepted(world, f"job{number}")
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)] * 3


def starts_pause(world: World) -> None:
    three_are_refused(world)
    world.schedule()
    world.now += minutes(1)


def probe_is_refused(world: World) -> None:
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)]
    world.wake()


def two_run(world: World) -> None:
    accepted(world, "job1", priority=1)
    accepted(world, "job2", priority=2)
    world.schedule()
    for name in ("job1", "job2"):
        world.sagemaker.train(name)
        world.tell(name)
    assert world.states("job1", "job2") == ["running", "running"]


def urgent_comes(world: World) -> None:
    two_run(world)
    accepted(world, "job4", priority=3)


def victim_stopped(world: World) -> None:
    urgent_comes(world)
    world.schedule()
    world.sagemaker.end("job1", "Stopped")


def one_completed(world: World) -> None:
    two_run(world)
    world.sagemaker.end("job1", "Completed")


def much_to_repair(world: World) -> None:
    """An end nobody heard of, and a claim whose process died before it created anything."""
    two_run(world)
    world.sagemaker.end("job1", "Completed")
    world.tell("job1")
    accepted(world, "job3")
    assert world.dies(world.wake, Crash("CreateTrainingJob", "before"))
    world.sagemaker.end("job2", "Completed")
    world.now += minutes(6)
    assert world.states("job2", "job3") == ["running", "starting"]


def one_failed(world: World) -> None:
    """Of what is not its fault: it comes back."""
    two_run(world)
    world.sagemaker.end("job1", "Failed", reason="InternalServerError: try again")


def spot_is_no_good(world: World) -> None:
    """Interrupted once more than the policy bears."""
    accepted(world, "job1", **ON_SPOT)
    world.schedule()
    for _ in range(4):
        world.sagemaker.train("job1")
        world.sagemaker.interrupt("job1")


def spot_fell_back(world: World) -> None:
    spot_is_no_good(world)
    world.tell("job1")
    world.schedule()
    world.sagemaker.end("job1", "Stopped")


def job1_is_heard_of(world: World) -> None:
    world.tell("job1")


def delete(world: World) -> None:
    assert world.api("DELETE", "/jobs/job1")["status"] in (202, 409)


# ---- alarms


def gpus_train(world: World) -> None:
    """Nobody watches them yet."""
    accepted(world, "job1", ResourceConfig=gpu_hosts(1))
    world.schedule()
    trains(world, "job1")


def gpus_are_watched(world: World) -> None:
    gpus_train(world)
    world.wake()
    assert alarms(world) == {idle_alarm("job1")}


def alarm_goes_off(world: World) -> None:
    gpus_are_watched(world)
    goes(world, "job1", "ALARM")


def alarm_is_heard(world: World) -> None:
    hears_of(world, "job1")


def idle_for_too_long(world: World) -> None:
    alarm_goes_off(world)
    hears_of(world, "job1")
    world.schedule()
    world.now += minutes(10)


def watched_job_has_ended(world: World) -> None:
    gpus_are_watched(world)
    world.sagemaker.end("job1", "Completed")
    world.tell("job1")


def an_alarm_is_orphaned(world: World) -> None:
    """Its job's end left a message that was done, before a slow pass made the alarm once more."""
    watched_job_has_ended(world)
    made = world.cloud.cloudwatch._alarms[idle_alarm("job1")]
    world.schedule()
    assert alarms(world) == set()
    world.cloud.cloudwatch._alarms[made.name] = made


# ---- warm pools


def warm_pool_left(world: World) -> None:
    """job1 ended well and left its instance warm; job2 trains."""
    one_completed(world)
    world.tell("job1")
    assert set(world.sagemaker.available()) == {"job1"}


def warm_pool_wanted(world: World) -> None:
    warm_pool_left(world)
    accepted(world, "job3")


def warm_pool_taken(world: World) -> None:
    warm_pool_wanted(world)
    world.schedule()
    assert world.sagemaker.jobs["job1"].warm_status == "InUse"
    world.sagemaker.train("job3")


def warm_pool_in_the_way(world: World) -> None:
    """job2 is over, too: a job that needs both instances has to wait for the warm ones to go."""
    warm_pool_left(world)
    world.sagemaker.end("job2", "Completed")
    world.tell("job2")
    world.sagemaker.keeps_released = True
    accepted(world, "job3", ResourceConfig={"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10})


# ---- limits, choices, changes by people


def account_allows_one(world: World) -> None:
    world.sagemaker.limits[A] = 1
    accepted(world, "job1")
    world.schedule()
    trains(world, "job1")
    accepted(world, "job2")


def account_allows_more_by_now(world: World) -> None:
    account_allows_one(world)
    world.schedule()
    world.sagemaker.limits.clear()
    world.now += minutes(2)


def a_choice_was_made(world: World) -> None:
    """SageMaker may take A or B and has taken B; job2 waits for A."""
    choice = [{"InstanceType": A, "InstanceCount": 1}, {"InstanceType": B, "InstanceCount": 1}]
    accepted(world, "job1", ResourceConfig={"InstancePreferences": choice, "VolumeSizeInGB": 10})
    world.schedule()
    accepted(world, "job2")
    world.schedule()
    assert world.states("job1", "job2") == ["running", "pending"]
    world.sagemaker.train("job1")


def three_want_two(world: World) -> None:
    two_run(world)
    accepted(world, "job3")
    world.schedule()


def backs_off(world: World) -> None:
    accepted(world, "job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("InternalFailure", 500)]
    world.schedule()
    assert world.job("job1").is_parked
    world.now += minutes(1)


def preemptor_left(world: World) -> None:
    urgent_comes(world)
    world.schedule()
    assert world.cancel("job4") == 202


def lower_the_capacity(world: World) -> None:
    lower = {"pools": [{"name": "main", "capacity": {A: 1}}]}
    assert world.api("PUT", "/policy", lower)["status"] == 200


def raise_the_priority(world: World) -> None:
    assert world.patch("job3", priority=9)["status"] == 200


def hold(world: World) -> None:
    assert world.patch("job3", held=True)["status"] == 200


def release(world: World) -> None:
    assert world.patch("job3", held=False)["status"] == 200


def one_is_held(world: World) -> None:
    three_want_two(world)
    hold(world)


def the_order_changes(world: World) -> None:
    three_want_two(world)
    order = {"aging": {"per": "1h", "add": 1}}
    policy = {"pools": [{"name": "main", "capacity": {A: 2}, "order": order}]}
    assert world.api("PUT", "/policy", policy)["status"] == 200
