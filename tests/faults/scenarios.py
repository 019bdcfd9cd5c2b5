"""Handlers at work, to be killed in the middle, and where everything must be once it has come to rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmaster.core.jobs.instances import Vector

from tests.builders import A, B, minutes, of
from tests.faults.alarming import alarms, goes, gpu_hosts, gpu_policy, hears_of, idle_alarm
from tests.faults.scenes import trains
from tests.integration.world import Crash, World


@dataclass(frozen=True, slots=True)
class Scenario:
    """One handler at work, and where everything must be in the end, whatever died in between."""

    prepare: Callable[[World], Any]
    act: Callable[[World], Any]
    ends: dict[str, str]
    """State of each job once everything has come to rest."""
    policy: dict[str, Any] | None = None
    capacity: Vector | None = None
    """What must not be exceeded, where the policy was changed to less."""
    again: Callable[[World], Any] | None = None
    """What the outside repeats by itself: the client its request."""
    watched: tuple[str, ...] = ()
    """Training jobs that have an alarm in the end."""
    on_demand: tuple[str, ...] = ()
    """Jobs that left spot."""


SPOT = {"pools": [{"name": "main", "capacity": {A: 2}, "spot_capacity": {A: 1}}]}
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
    world.sagemaker.refuse["CreateTrainingJob"] = [("ThrottlingException", 400)] * 3
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


WARM = {"pools": [{"name": "main", "capacity": {A: 2}, "warm_pool": {"keep_alive": "10m"}}]}
TWO_TYPES = {"pools": [{"name": "main", "capacity": {A: 1, B: 1}}]}
ONE_LEFT = {"job1": "completed", "job2": "running"}
TAKEN_OVER = ONE_LEFT | {"job3": "running"}
THREE_OF_TWO = {"job1": "running", "job2": "running", "job3": "pending"}
MADE_ROOM = {"job1": "preempted", "job2": "running", "job4": "running"}
SCENARIOS = {
    "submit": Scenario(lambda _: None, waits, {"job1": "running"}, again=waits),
    "start": Scenario(waits, World.schedule, {"job1": "running"}),
    "a start that is refused": Scenario(refused, World.schedule, {"job1": "failed"}),
    "preempt": Scenario(urgent_comes, World.schedule, MADE_ROOM),
    "requeue": Scenario(victim_stopped, job1_is_heard_of, MADE_ROOM),
    "end": Scenario(one_completed, job1_is_heard_of, {"job1": "completed", "job2": "running"}),
    "cancel": Scenario(two_run, delete, {"job1": "stopped", "job2": "running"}, again=delete),
    "make alarms": Scenario(
        gpus_train, World.wake, {"job1": "running"}, policy=gpu_policy(), watched=("job1",)
    ),
    "idle alarm": Scenario(
        alarm_goes_off,
        alarm_is_heard,
        {"job1": "running"},
        policy=gpu_policy(then="notify"),
        watched=("job1",),
    ),
    "an idle job is stopped": Scenario(
        idle_for_too_long, World.reconcile, {"job1": "stopped"}, policy=gpu_policy()
    ),
    "delete alarms": Scenario(
        watched_job_has_ended, World.schedule, {"job1": "completed"}, policy=gpu_policy()
    ),
    "sweep alarms": Scenario(
        an_alarm_is_orphaned, World.reconcile, {"job1": "completed"}, policy=gpu_policy()
    ),
    "a failure that is retried": Scenario(
        one_failed, job1_is_heard_of, {"job1": "running", "job2": "running"}
    ),
    "too many interruptions": Scenario(
        spot_is_no_good, job1_is_heard_of, {"job1": "running"}, policy=SPOT, on_demand=("job1",)
    ),
    "back on demand": Scenario(
        spot_fell_back, job1_is_heard_of, {"job1": "running"}, policy=SPOT, on_demand=("job1",)
    ),
    "reconcile": Scenario(
        much_to_repair, World.reconcile, {"job1": "completed", "job2": "completed", "job3": "running"}
    ),
    "an end that leaves a warm pool": Scenario(one_completed, job1_is_heard_of, ONE_LEFT, policy=WARM),
    "reuse a warm pool": Scenario(warm_pool_wanted, World.schedule, TAKEN_OVER, policy=WARM),
    "settle a reuse": Scenario(warm_pool_taken, lambda world: world.tell("job3"), TAKEN_OVER, policy=WARM),
    "release a warm pool": Scenario(warm_pool_left, World.schedule, ONE_LEFT, policy=WARM),
    "release a warm pool for a wider job": Scenario(
        warm_pool_in_the_way,
        World.schedule,
        {"job1": "completed", "job2": "completed", "job3": "running"},
        policy=WARM,
    ),
    "learn a limit": Scenario(account_allows_one, World.schedule, {"job1": "running", "job2": "pending"}),
    "forget a limit": Scenario(
        account_allows_more_by_now, World.wake, {"job1": "running", "job2": "running"}
    ),
    "narrow a choice": Scenario(
        a_choice_was_made, job1_is_heard_of, {"job1": "running", "job2": "running"}, policy=TWO_TYPES
    ),
    "bring a back-off home": Scenario(backs_off, World.wake, {"job1": "running"}),
    "drop a hold": Scenario(
        preemptor_left, World.wake, {"job1": "running", "job2": "running", "job4": "stopped"}
    ),
    "lower the capacity": Scenario(
        three_want_two, lower_the_capacity, THREE_OF_TWO, again=lower_the_capacity, capacity=of(2)
    ),
    "a new priority": Scenario(
        three_want_two,
        raise_the_priority,
        {"job1": "preempted", "job2": "running", "job3": "running"},
        again=raise_the_priority,
    ),
    "hold": Scenario(three_want_two, hold, THREE_OF_TWO | {"job3": "held"}, again=hold),
    "release": Scenario(one_is_held, release, THREE_OF_TWO, again=release),
    "a new order": Scenario(the_order_changes, World.schedule, THREE_OF_TWO),
}


MINUTES = 6
"""Rounds of the reconciler within which everything must be good again."""


def comes_to_rest(world: World, scenario: Scenario) -> dict[str, str]:
    """SageMaker finishes what it was told to stop; no event of it arrives; minutes pass."""
    states: dict[str, str] = {}
    for _ in range(MINUTES):
        for name, job in world.sagemaker.live().items():
            if job.status == "Stopping":
                world.sagemaker.end(name, "Stopped")
        world.a_minute_passes()
        states = {name: world.job(name).state.value for name in scenario.ends}
        rows = {pool.training_job_name for pool in world.wiring.reader.pool_state("main").warm_pools}
        settled = rows == set(world.sagemaker.available())
        watched = {idle_alarm(name) for name in scenario.watched}
        moved = all(world.job(name).on_demand for name in scenario.on_demand)
        if states == scenario.ends and settled and moved and alarms(world) == watched:
            return states
    unsettled = {**states, "warm pools or alarms": "were not settled"}
    return unsettled if states == scenario.ends else states
