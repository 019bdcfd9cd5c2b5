"""Group R of the fault list: elastic jobs as the stack runs them."""

from collections.abc import Callable
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


def figured(world: World, quota: int) -> None:
    """The account grants so many instances, and AWS's refusals give the figures."""
    world.sagemaker.limits[A] = quota


def unfigured(world: World, quota: int) -> None:
    """As ``figured``, in words that nobody knows."""
    asks = world.sagemaker._CreateTrainingJob

    def answer(body: dict[str, Any]) -> Response:
        if body["ResourceConfig"]["InstanceCount"] <= quota:
            return asks(body)
        world.sagemaker.intercept["CreateTrainingJob"] = answer
        return refusal("ResourceLimitExceeded", "There is no more for you")

    world.sagemaker.intercept["CreateTrainingJob"] = answer


def above_volume_size(_: dict[str, Any]) -> Response:
    quota = "'Size of EBS volume for an instance of a training job' is 5 Gigabytes"
    limit = f"{quota}, with current utilization of 0 Gigabytes and a request delta of 10 Gigabytes"
    return refusal("ResourceLimitExceeded", f"The account-level service limit {limit}")


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


@pytest.mark.parametrize("words", [figured, unfigured], ids=["with figures", "in words not known"])
def test_R2_an_account_quota_below_its_width_narrows_it_and_it_never_waits(
    new_world: NewWorld, words: Callable[[World, int], None]
) -> None:
    world = new_world(pool(4))
    words(world, 2)
    submit(world, "wide", "1-4")
    world.schedule()
    assert code_of(world, "wide") == "account-limit"
    later(world, minutes(1))
    assert world.states("wide") == ["running"]
    assert sent(world, "wide") == (2, 16)
    assert world.wire.sent.count("CreateTrainingJob") == 2, "one refusal is enough to learn from"
    world.check("wide")


def test_R2_a_narrowed_job_grows_only_within_what_the_account_allows(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    figured(world, 2)
    submit(world, "wide", "1-4")
    world.schedule()
    later(world, minutes(1))
    trains(world, world.job("wide").live_attempt.training_job_name)
    for _ in range(4):
        later(world, minutes(40))
    assert world.states("wide") == ["running"]
    assert "a limit of the account allows 2 instances" in world.api("GET", "/jobs/wide")["elastic"]["why"]
    assert world.wire.sent.count("CreateTrainingJob") == 2


def test_R2_only_a_least_width_above_the_quota_waits_for_it(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    figured(world, 1)
    submit(world, "wide", "2-4")
    world.schedule()
    for _ in range(4):
        later(world, minutes(20))
    assert world.states("wide") == ["pending"]
    assert code_of(world, "wide") == "account-limit"
    world.sagemaker.limits[A] = 2
    later(world, minutes(20))
    assert sent(world, "wide") == (2, 16)


def test_R2_a_limit_of_anything_but_instances_changes_no_width(new_world: NewWorld) -> None:
    world = new_world(pool(4))
    world.sagemaker.intercept["CreateTrainingJob"] = above_volume_size
    submit(world, "wide", "1-4")
    world.schedule()
    assert code_of(world, "wide") == "account-limit"
    assert world.wiring.reader.pool_state("main").account_limits == {}, "it teaches nothing about the type"
    later(world, minutes(1))
    assert sent(world, "wide") == (4, 8)


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
