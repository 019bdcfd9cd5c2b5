"""Warm pools and choices of instance types while things go wrong: each is counted once, and not for long."""

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import A, B, minutes, of
from tests.faults.conftest import NewWorld
from tests.faults.scenarios import TWO_TYPES, WARM
from tests.faults.scenes import ends, trains
from tests.integration.cloud import THROTTLED, AnswerLost
from tests.integration.world import World

WIDE = {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10}
CHOICE = {
    "InstancePreferences": [{"InstanceType": A, "InstanceCount": 1}, {"InstanceType": B, "InstanceCount": 1}],
    "VolumeSizeInGB": 10,
}


@pytest.fixture
def warm(new_world: NewWorld) -> World:
    """job1 has ended and left its instance warm, nobody has looked since; job2 trains on the other."""
    world = new_world(WARM)
    for name in ("job1", "job2"):
        world.submit(name)
    world.schedule()
    trains(world, "job1", "job2")
    world.sagemaker.end("job1", "Completed")
    world.tell("job1")
    return world


ON_A = {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 10}
GROUP = {"InstanceGroupName": "a", "InstanceType": A, "InstanceCount": 1}
MIXED = {
    "InstanceGroups": [GROUP, GROUP | {"InstanceGroupName": "b", "InstanceType": B}],
    "VolumeSizeInGB": 10,
}
SPOT = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
}


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        pytest.param({}, 600, id="one instance"),
        pytest.param({"ResourceConfig": WIDE}, 600, id="instances of one type"),
        pytest.param(
            {"ResourceConfig": ON_A | {"KeepAlivePeriodInSeconds": 60}}, 60, id="less was asked for"
        ),
        pytest.param({"ResourceConfig": ON_A | {"KeepAlivePeriodInSeconds": 3600}}, 600, id="more was"),
        pytest.param(SPOT, None, id="spot is never kept"),
        pytest.param({"ResourceConfig": MIXED}, None, id="nor are instances of several types"),
    ],
)
def test_what_is_kept_where_the_policy_writes_nothing(
    new_world: NewWorld, changes: dict[str, Any], seconds: int | None
) -> None:
    pool = {"name": "main", "capacity": {A: 2, B: 1}, "spot_capacity": {A: 1}}
    world = new_world({"pools": [pool]}, as_written=True)
    assert world.submit("job1", **changes)["status"] == 201
    world.schedule()
    assert world.states("job1") == ["running"]
    sent = world.sagemaker.jobs["job1"].request["ResourceConfig"]
    assert sent.get("KeepAlivePeriodInSeconds") == seconds


def two_jobs_end(world: World) -> None:
    for name in ("job1", "job2"):
        world.submit(name)
    world.schedule()
    trains(world, "job1", "job2")
    for name in ("job1", "job2"):
        ends(world, name)


def test_what_no_job_is_known_to_come_for_is_given_up_by_default(new_world: NewWorld) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 2}}]}, as_written=True)
    two_jobs_end(world)
    world.a_minute_passes()
    assert warm_rows(world) == []
    assert all(world.sagemaker.jobs[name].warm_status != "Available" for name in ("job1", "job2"))
    world.check("job1", "job2")


def test_what_the_policy_promises_makes_room_for_a_job_that_cannot_use_it(
    new_world: NewWorld,
) -> None:
    pool = {"name": "main", "capacity": {A: 2}, "warm_pool": {"retain": "10m"}}
    world = new_world({"pools": [pool]}, as_written=True)
    two_jobs_end(world)
    assert warm_rows(world) == ["job1", "job2"], "nobody waits, and a job may come"
    (shown,) = world.api("GET", "/pools")["pools"]
    promised = "kept for 10m00s after their job, longer for a waiting job that can use them"
    assert [warm["because"] for warm in shown["warm_pools"]] == [promised] * 2
    world.submit("wide", ResourceConfig=WIDE)
    world.schedule()
    world.a_minute_passes()
    assert world.states("wide") == ["running"]
    world.check("job1", "job2", "wide")


def warm_rows(world: World) -> list[str]:
    return [pool.training_job_name for pool in world.wiring.reader.pool_state("main").warm_pools]


def test_the_next_job_of_the_same_kind_takes_the_warm_pool(warm: World) -> None:
    warm.submit("job3")
    warm.schedule()
    assert warm.states("job3") == ["running"]
    assert warm.sagemaker.jobs["job1"].warm_status == "InUse"
    assert warm_rows(warm) == []
    warm.check("job1", "job2", "job3")


def test_a_warm_pool_that_was_taken_while_it_was_given_up_is_counted_once(warm: World) -> None:
    """The pass gives it up for nobody waits; meanwhile a job comes that could use it."""

    def comes_meanwhile() -> None:
        warm.submit("job3")
        warm.wake()

    warm.meanwhile["UpdateTrainingJob"] = comes_meanwhile
    warm.schedule()
    warm.a_minute_passes()
    assert warm.states("job3") == ["running"]
    warm.check("job1", "job2", "job3")


def test_two_passes_do_not_take_one_warm_pool_for_two_jobs(warm: World) -> None:
    warm.submit("job3")
    warm.submit("job4")
    create = warm.sagemaker._CreateTrainingJob

    def another_pass_meanwhile(body: dict[str, Any]) -> Any:
        warm.wake()
        return create(body)

    warm.sagemaker.intercept["CreateTrainingJob"] = another_pass_meanwhile
    warm.schedule()
    assert warm.states("job3", "job4") == ["running", "pending"]
    warm.check("job1", "job2", "job3", "job4")


def test_D1_a_warm_pool_that_cannot_be_given_up_stays_counted(warm: World) -> None:
    warm.wire.lasting["UpdateTrainingJob"] = THROTTLED
    warm.submit("wide", ResourceConfig=WIDE)
    ends(warm, "job2")
    warm.a_minute_passes()
    assert warm.states("wide") == ["pending"]
    warm.check("job1", "job2", "wide")
    warm.wire.heal()
    warm.a_minute_passes()
    assert warm.states("wide") == ["running"]
    warm.check("job1", "job2", "wide")


def test_D7_a_warm_pool_given_up_without_an_answer_is_settled_by_what_sagemaker_says(warm: World) -> None:
    warm.wire.strike("UpdateTrainingJob", 3, AnswerLost())
    warm.wake()
    assert warm_rows(warm) == ["job1"], "nobody knows"
    warm.check("job1", "job2")
    warm.a_minute_passes()
    assert warm_rows(warm) == []
    warm.check("job1", "job2")


def test_H10_a_warm_pool_yields_to_a_wider_job_and_nothing_is_started_to_keep_it(warm: World) -> None:
    """Both instances are wanted at once; a pool that is given up is free when SageMaker says so."""
    ends(warm, "job2")
    warm.submit("wide", ResourceConfig=WIDE)
    warm.schedule()
    warm.a_minute_passes()
    assert warm.states("wide") == ["running"]
    assert warm.sagemaker.creates == ["job1", "job2", "wide"], "there are no dummy jobs"
    warm.check("job1", "job2", "wide")


def test_a_released_warm_pool_blocks_its_room_until_sagemaker_has_let_go(warm: World) -> None:
    warm.sagemaker.keeps_released = True
    ends(warm, "job2")
    warm.submit("wide", ResourceConfig=WIDE)
    warm.schedule()
    assert warm.states("wide") == ["pending"]
    warm.check("job1", "job2", "wide")
    warm.now += minutes(10)  # its keep-alive is over
    warm.a_minute_passes()
    assert warm.states("wide") == ["running"]
    warm.check("job1", "job2", "wide")


def test_B5_a_warm_pool_that_expired_unheard_is_not_counted_for_long(warm: World) -> None:
    warm.now += minutes(11)
    warm.reconcile()
    warm.schedule()
    assert warm_rows(warm) == []
    warm.check("job1", "job2")


def test_B5_a_start_that_sagemaker_put_beside_the_warm_pool_counts_both(warm: World) -> None:
    """The account has another pool that matches; SageMaker took that one."""
    warm.submit("job3")
    warm.sagemaker.jobs["job1"].request["ResourceConfig"]["VolumeSizeInGB"] = 99  # no match for SageMaker
    warm.schedule()
    trains(warm, "job3")
    assert warm.states("job3") == ["running"]
    assert set(warm_rows(warm)) == {"job1"}, "counted again: for a while that is more than the capacity"
    warm.check("job1", "job2", "job3", capacity=of(3))
    warm.schedule()
    warm.a_minute_passes()
    warm.check("job1", "job2", "job3")


def test_A5_a_start_into_a_warm_pool_that_never_came_gives_the_pool_back(warm: World) -> None:
    warm.submit("job3")
    warm.wire.strike("CreateTrainingJob", 1, THROTTLED)
    warm.wire.lasting["CreateTrainingJob"] = THROTTLED
    warm.schedule()
    assert warm.states("job3") == ["pending"]
    warm.check("job1", "job2", "job3")
    warm.wire.heal()
    warm.now += minutes(1)
    warm.wake()
    assert warm.states("job3") == ["running"]
    warm.check("job1", "job2", "job3")


def test_C6_a_preemptor_that_lands_in_the_pool_of_its_victim(new_world: NewWorld) -> None:
    world = new_world(WARM)
    for name in ("job1", "job2"):
        world.submit(name, priority=1)
    world.schedule()
    trains(world, "job1", "job2")
    world.submit("job4", priority=3)
    world.schedule()
    victim = next(name for name in ("job1", "job2") if world.states(name) == ["preempting"])
    ends(world, victim, "Stopped")
    assert world.states("job4") == ["running"]
    assert world.sagemaker.jobs[victim].warm_status == "InUse"
    world.check("job1", "job2", "job4")


def test_of_several_types_all_are_held_until_sagemaker_has_chosen(new_world: NewWorld) -> None:
    world = new_world(TWO_TYPES)
    world.submit("job1", ResourceConfig=CHOICE)
    world.submit("job2")
    world.schedule()
    assert world.states("job1", "job2") == ["running", "pending"]
    world.check("job1", "job2")
    world.sagemaker.train("job1")  # takes B
    world.reconcile()
    world.schedule()
    assert world.states("job1", "job2") == ["running", "running"]
    world.check("job1", "job2")


def test_A4_a_choice_that_was_never_created_gives_every_type_back(new_world: NewWorld) -> None:
    world = new_world(TWO_TYPES)
    world.submit("job1", ResourceConfig=CHOICE)
    world.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)]
    world.submit("job2")
    world.schedule()
    assert world.states("job1", "job2") == ["pending", "running"]
    world.check("job1", "job2")


def test_B2_the_end_of_a_choice_that_nobody_saw_made_gives_every_type_back(new_world: NewWorld) -> None:
    world = new_world(TWO_TYPES)
    world.submit("job1", ResourceConfig=CHOICE)
    world.schedule()
    world.sagemaker.train("job1")
    ends(world, "job1")
    assert world.states("job1") == ["completed"]
    world.check("job1")


def test_N18_a_warm_pool_is_billed_for_what_sagemaker_says_not_until_somebody_looks(
    new_world: NewWorld,
) -> None:
    """They are given up at once; SageMaker lets each go at another second before the next look."""
    eight = {"name": "main", "capacity": {A: 8}, "warm_pool": {"keep_alive": "10m"}}
    world = new_world({"pools": [eight], "prices": {A: 3600}})
    names = [f"job{number}" for number in range(8)]
    for name in names:
        world.submit(name)
    world.schedule()
    trains(world, *names)
    world.sagemaker.keeps_released = True
    for name in names:
        ends(world, name)
    assert warm_rows(world) == names, "SageMaker keeps them still"
    kept = {name: 5 + 7 * number for number, name in enumerate(names)}
    for name, seconds in kept.items():
        world.sagemaker.jobs[name].warm_until = world.now + timedelta(seconds=seconds)
    world.now += timedelta(seconds=60)
    world.reconcile()
    world.schedule()
    assert warm_rows(world) == []
    month = world.now.strftime("%Y-%m")
    usage = world.api("GET", "/usage", query={"month": month, "team": "default"})
    billed = {job["name"]: job["by"]["warm_pool"] for job in usage["jobs"]}
    assert billed == pytest.approx(kept), "a dollar a second"


@pytest.mark.parametrize("status", [pytest.param(None, id="no status"), "Terminated"])
def test_N17_warm_instances_that_are_not_kept_are_free_and_operators_hear_of_it_once(
    new_world: NewWorld, status: str | None
) -> None:
    world = new_world(WARM)
    world.sagemaker.keeps_warm = False
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    world.schedule()
    trains(world, "job1", "job2")
    for name in ("job1", "job2"):
        world.sagemaker.end(name, "Completed")
        world.sagemaker.jobs[name].warm_status = status
        world.tell(name)
        state = world.wiring.reader.pool_state("main")
        assert (state.warm, warm_rows(world)) == ({}, [])
    assert world.wiring.reader.pool_state("main").used == {}, "both slots came free with the ends"
    world.schedule()
    assert world.states("job3") == ["running"]
    warnings = [event.detail for event in world.messages.events if event.kind == "Platform Warning"]
    assert [(one["subject"], one["team"]) for one in warnings] == [("warm-pools-not-kept", "operators")]
    assert A in warnings[0]["what"]
    world.check("job1", "job2", "job3")
