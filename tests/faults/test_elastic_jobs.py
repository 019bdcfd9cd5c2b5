"""Group R of the fault list: elastic jobs as the stack runs them."""

from datetime import timedelta
from typing import Any

import pytest

from local.wire import Response
from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.cloud import refusal
from tests.integration.world import World

HOUR = 3600


def pool(capacity: int, **rules: Any) -> dict[str, Any]:
    return {
        "pools": [{"name": "main", "capacity": {A: capacity}, "warm_pool": {"keep_alive": "0s"}, **rules}]
    }


def submit(world: World, name: str, widths: str, *, priority: int = 0, hours: int = 8) -> None:
    """An elastic job, with the largest width as its count."""
    largest = int(widths.replace("-", " ").split()[-1])
    tags = {"priority": str(priority), "trainmaster:elastic": widths}
    answer = world.submit(
        name,
        ResourceConfig={"InstanceType": A, "InstanceCount": largest, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": hours * HOUR},
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    assert answer["status"] == 201, answer


def rigid(world: World, name: str, count: int, *, priority: int = 0) -> None:
    resources = {"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 10}
    world.submit(name, priority=priority, ResourceConfig=resources)


def quota_reached(_: dict[str, Any]) -> Response:
    limit = f"The account-level service limit '{A} for training job usage' is 3 Instances"
    return refusal("ResourceLimitExceeded", limit)


def later(world: World, time: timedelta) -> None:
    """Let time pass, and have parked jobs looked at again."""
    world.now += time
    world.a_minute_passes()


def sent(world: World, name: str) -> tuple[int, float]:
    """Instances and hours of run time of the newest training job of a job."""
    live = world.job(name).live
    assert live is not None
    request = world.sagemaker.jobs[live.training_job_name].request
    return (
        request["ResourceConfig"]["InstanceCount"],
        request["StoppingCondition"]["MaxRuntimeInSeconds"] / HOUR,
    )


@pytest.mark.parametrize(
    ("others", "instances", "hours"), [(0, 4, 8), (1, 3, 8 * 4 / 3), (2, 2, 16), (3, 1, 32)]
)
def test_R2_it_starts_at_the_largest_width_that_fits_with_its_run_time_to_match(
    new_world: NewWorld, others: int, instances: int, hours: float
) -> None:
    world = new_world(pool(4))
    if others:
        rigid(world, "other", others)
    submit(world, "wide", "1-4")
    world.schedule()
    width, run_time = sent(world, "wide")
    assert width == instances
    assert run_time == pytest.approx(hours, abs=1 / HOUR)
    world.check("wide", *(["other"] if others else []))


def test_R2_it_never_starts_below_its_least_width(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    rigid(world, "other", 3)
    submit(world, "wide", "2-4")
    world.schedule()
    assert world.states("other", "wide") == ["running", "pending"]


def test_R2_a_refused_run_time_waits_for_a_wider_width_and_fails_nobody(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    rigid(world, "other", 3)
    submit(world, "wide", "1 4")
    world.sagemaker.longest_run = 10 * HOUR
    world.schedule()
    assert world.states("wide") == ["pending"]
    assert code_of(world, "wide") == "account-limit"
    assert world.wiring.reader.pool_state("main").account_limits == {}, "it is no limit of instances"
    later(world, minutes(20))
    assert world.wire.sent.count("CreateTrainingJob") == 2, "as much is not asked for again"
    trains(world, "other")
    ends(world, "other")
    later(world, minutes(1))
    assert sent(world, "wide") == (4, 8)


def test_R2_a_run_time_refused_before_is_cut_to_what_was_granted(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    rigid(world, "other", 3)
    submit(world, "wide", "1 4")
    world.sagemaker.longest_run = 10 * HOUR
    world.schedule()
    trains(world, "other")
    ends(world, "other")
    later(world, minutes(20))
    trains(world, "wide")
    rigid(world, "urgent", 3, priority=9)
    ends(world, world.job("wide").live_attempt.training_job_name, "Failed", reason="CapacityError: none")
    later(world, minutes(20))
    assert sent(world, "wide") == (1, 8)


def test_R2_a_start_without_capacity_backs_off_and_falls_back_once(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    submit(world, "wide", "1-4")
    world.schedule()
    widths = [sent(world, "wide")[0]]
    for _ in range(3):
        ends(world, world.job("wide").live_attempt.training_job_name, "Failed", reason="CapacityError: none")
        assert code_of(world, "wide") == "backoff"
        later(world, timedelta(hours=4))
        widths.append(sent(world, "wide")[0])
    assert widths == [4, 3, 3, 3]


def test_R2_a_quota_of_instances_teaches_nothing_about_run_times(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    rigid(world, "other", 3)
    world.schedule()
    world.sagemaker.intercept["CreateTrainingJob"] = quota_reached
    submit(world, "wide", "1 4")
    world.schedule()
    assert code_of(world, "wide") == "account-limit"
    state = world.job("wide").elastic
    assert state is None or state.limits.refused is None
