"""O17: a training role that may not put metrics, and what else keeps the data of GPUs from being there."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.alarming import alarms, gpu_hosts, gpu_policy, idle_alarm, live, watched_job, work
from tests.faults.conftest import NewWorld
from tests.faults.scenes import trains
from tests.integration.cloud import THROTTLED
from tests.integration.world import Crash, World


@pytest.fixture
def gpus(new_world: NewWorld) -> World:
    """job1 trains on a GPU since now, and its alarm watches it."""
    world = new_world(gpu_policy(4))
    watched_job(world)
    return world


def runs(world: World, times: int) -> int:
    """``reconcile`` and passes, once a minute; how often CloudWatch was asked for data."""
    before = world.called.count("GetMetricData")
    for _ in range(times):
        world.now += minutes(1)
        world.reconcile()
        world.schedule()
    return world.called.count("GetMetricData") - before


def unguarded(world: World, name: str = "job1") -> dict[str, Any] | None:
    (attempt,) = world.api("GET", f"/jobs/{name}")["attempts"]
    reason: dict[str, Any] | None = attempt["unguarded"]
    return reason


def test_O17_no_data_for_15_minutes_of_training_is_reported_once_with_the_right_that_lacks(
    gpus: World,
) -> None:
    assert (runs(gpus, 14), unguarded(gpus)) == (0, None), "data may come some minutes late"
    assert runs(gpus, 1) == 1
    reason = unguarded(gpus)
    assert reason is not None
    assert reason["code"] == "no-metrics"
    assert "cloudwatch:PutMetricData" in reason["message"]
    assert str(gpus.wiring.reader.request("job1")["RoleArn"]) in reason["message"]
    assert gpus.messages.kinds().count("Job Unguarded") == 1
    assert runs(gpus, 30) == 0, "once an attempt"
    assert unguarded(gpus) == reason
    assert gpus.messages.kinds().count("Job Unguarded") == 1
    assert (gpus.states("job1"), alarms(gpus)) == (["running"], {idle_alarm("job1")})


def test_O17_passes_do_not_make_the_alarms_of_a_silent_job_again_and_again(gpus: World) -> None:
    runs(gpus, 15)
    made = gpus.called.count("PutMetricAlarm")
    runs(gpus, 5)
    assert gpus.called.count("PutMetricAlarm") == made


def test_O17_a_changed_policy_brings_no_data(gpus: World) -> None:
    runs(gpus, 15)
    changed = gpu_policy(4) | {"utilization": {"for": "1h"}}
    assert gpus.api("PUT", "/policy", changed)["status"] == 200
    runs(gpus, 2)
    assert idle_alarm("job1", "utilization") in alarms(gpus)
    reason = unguarded(gpus)
    assert reason is not None
    assert reason["code"] == "no-metrics"


def test_O17_a_host_with_data_is_guarded_and_is_looked_for_once(gpus: World) -> None:
    work(gpus, "job1", 90.0, minutes=15)
    assert (runs(gpus, 20), unguarded(gpus)) == (1, None)
    assert live(gpus).watch.metrics_sought_at is not None


def test_O17_one_silent_host_of_several_is_named(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(4))
    watched_job(world, hosts=3)
    work(world, "job1", 90.0, None, 80.0, minutes=15)
    runs(world, 1)
    reason = unguarded(world)
    assert reason is not None
    assert reason["code"] == "no-metrics"
    assert "1 of its 3 hosts (algo-2)" in reason["message"]
    assert "PutMetricData" not in reason["message"], "the role can: its other hosts have data"


def test_O17_all_attempts_that_are_due_are_asked_for_in_one_call(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(4))
    for name in ("job1", "job2", "job3"):
        watched_job(world, name)
    assert runs(world, 16) == 1
    assert [unguarded(world, name) is not None for name in ("job1", "job2", "job3")] == [True] * 3


def test_O17_a_cloudwatch_that_does_not_answer_says_nothing_and_is_asked_again(gpus: World) -> None:
    gpus.wire.lasting["GetMetricData"] = THROTTLED
    runs(gpus, 16)
    assert unguarded(gpus) is None
    gpus.wire.heal()
    work(gpus, "job1", 90.0, minutes=2)
    assert (runs(gpus, 1), unguarded(gpus)) == (1, None)


def test_O17_after_half_an_hour_nobody_looks_any_more(gpus: World) -> None:
    """So attempts from before the stack could look are left alone, and a right that lacks costs little."""
    gpus.now += minutes(30)
    assert (runs(gpus, 3), unguarded(gpus)) == (0, None)


def test_O17_a_run_that_dies_after_it_has_asked_leaves_the_look_to_the_next(gpus: World) -> None:
    gpus.now += minutes(16)
    assert gpus.dies(gpus.reconcile, Crash("GetMetricData", "after"))
    assert unguarded(gpus) is None
    assert runs(gpus, 1) == 1
    assert unguarded(gpus) is not None


def test_O17_without_gpus_or_alarms_nobody_looks(new_world: NewWorld) -> None:
    plain = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    assert plain.submit("job1")["status"] == 201
    plain.schedule()
    trains(plain, "job1")
    assert runs(plain, 20) == 0


def test_O17_off_is_off(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(4) | {"idle": "off"})
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    trains(world, "job1")
    assert (runs(world, 20), alarms(world), unguarded(world)) == (0, set(), None)


def test_O17_a_policy_that_does_not_mention_idle_watches_a_gpu_job_and_only_notifies(
    new_world: NewWorld,
) -> None:
    policy = gpu_policy(4)
    del policy["idle"]
    world = new_world(policy)
    watched_job(world)
    work(world, "job1", 0.0, minutes=20)
    runs(world, 1)
    assert live(world).watch.idle_since is not None
    assert live(world).watch.stop_due is None
    runs(world, 60)
    assert world.states("job1") == ["running"]
    assert world.messages.kinds().count("Job Idle") == 1
