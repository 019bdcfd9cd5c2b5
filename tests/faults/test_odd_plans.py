"""Training plans and requests for them as people really have them, through the API and the functions."""

from typing import Any

import pytest

from tests.builders import NOON, A
from tests.faults.conftest import NewWorld
from tests.integration.messages import request
from tests.integration.plan_scenes import ON_PLAN, ONLY, SPRING, at, described, on_the_plan, policy
from tests.integration.world import World

FIELD = "ResourceConfig.TrainingPlanArn"


def world_with(new_world: NewWorld, *, capacity: int = 0, **plan: Any) -> World:
    world = new_world(policy(capacity=capacity))
    world.sagemaker.plans["spring"] = described((0, 6)) | plan
    world.reconcile()
    return world


def submitted(world: World, name: str = "job", *, count: int = 1, **more: Any) -> dict[str, Any]:
    """Submit a job; ``arn`` names a plan, ``keep_alive`` asks for a warm pool."""
    body = request(name)
    body["ResourceConfig"]["InstanceCount"] = count
    for key, field in (("arn", "TrainingPlanArn"), ("keep_alive", "KeepAlivePeriodInSeconds")):
        if key in more:
            body["ResourceConfig"][field] = more.pop(key)
    return world.api("POST", "/add-job", body | more)


def refusal(answer: dict[str, Any]) -> tuple[int, str, str, str]:
    (error,) = answer["errors"]
    return answer["status"], error["field"], error["message"], error["hint"]


@pytest.mark.parametrize(
    ("arn", "status"),
    [
        pytest.param(SPRING.replace("us-east-1", "eu-west-1"), 422, id="another region"),
        pytest.param(SPRING.replace("123456789012", "999999999999"), 422, id="another account"),
        pytest.param(SPRING.replace("arn:aws:", "arn:aws-cn:"), 422, id="another partition"),
        pytest.param(SPRING.replace("spring", "SPRING"), 422, id="another case"),
        pytest.param(SPRING + " ", 422, id="a space behind it"),
        pytest.param(SPRING.replace("training-plan", "reserved-capacity"), 400, id="a part of a plan"),
        pytest.param(
            "arn:aws:ec2:us-east-1:123456789012:capacity-reservation/cr-0123456789", 400, id="Capacity Block"
        ),
        pytest.param("spring", 400, id="its name"),
        pytest.param("", 400, id="nothing"),
        pytest.param(None, 400, id="null"),
        pytest.param([SPRING], 400, id="a list"),
    ],
)
def test_an_arn_that_is_not_the_plans_is_refused_at_its_field(
    new_world: NewWorld, arn: Any, status: int
) -> None:
    found = refusal(submitted(world_with(new_world), arn=arn))
    assert found[:2] == (status, FIELD)
    if status == 422:
        assert found[3] == f"use {SPRING}"


@pytest.mark.parametrize("word", ["Only", "spring", SPRING, ""])
def test_the_tag_has_three_words_and_no_others(new_world: NewWorld, word: str) -> None:
    answer = submitted(world_with(new_world), Tags=[{"Key": "trainmaster:plan", "Value": word}])
    assert refusal(answer)[0] == 400
    assert refusal(answer)[3] == "write first, only or never"


@pytest.mark.parametrize("status", ["Expired", "Failed"])
def test_who_asks_for_a_plan_that_is_over_is_refused_and_all_others_run_on_demand(
    new_world: NewWorld, status: str
) -> None:
    world = world_with(new_world, capacity=1, Status=status)
    said = f"no window of plan spring will open: it has the status {status}"
    hint = "name another plan, or leave it out"
    assert refusal(submitted(world, arn=SPRING)) == (422, FIELD, said, hint)
    assert refusal(submitted(world, Tags=[ONLY])) == (422, "Tags[0].Value", said, hint)
    assert refusal(submitted(world, count=2))[2] == f"asks for 2, but pool main has 1 on-demand {A} in all"
    assert submitted(world)["status"] == 201
    world.schedule()
    assert world.states("job") == ["running"]
    assert on_the_plan(world) == []
    (view,) = world.api("GET", "/pools")["pools"][0]["plans"]
    assert (view["status"], view["window"], view["next"]) == (status, None, None)


def test_a_plan_that_is_not_paid_yet_is_waited_for(new_world: NewWorld) -> None:
    world = world_with(new_world, Status="Pending")
    assert submitted(world, arn=SPRING)["status"] == 201
    world.schedule()
    assert world.states("job") == ["pending"]
    world.sagemaker.plans["spring"] = described((0, 6))
    at(world, 1)
    assert world.states("job") == ["running"]


@pytest.mark.parametrize("target", ["hyperpod-cluster", "endpoint", "studio-apps"])
def test_a_plan_for_something_else_than_jobs_is_no_capacity_and_operators_hear_it_once(
    new_world: NewWorld, target: str
) -> None:
    world = world_with(new_world, capacity=1, TargetResources=[target])
    at(world, 1)
    assert submitted(world, arn=SPRING)["status"] == 422
    assert submitted(world)["status"] == 201
    world.schedule()
    assert (world.states("job"), on_the_plan(world)) == (["running"], [])
    (view,) = world.api("GET", "/pools")["pools"][0]["plans"]
    assert (view["trouble"], view["window"]) == (f"it is for {target}, not for training jobs", None)
    (told,) = [event.detail for event in world.messages.events if event.kind == "Platform Warning"]
    assert told["subject"] == "plan-unreadable"
    assert f"{SPRING}" in told["what"]
    assert f"it is for {target}, not for training jobs" in told["what"]


def test_a_plan_for_jobs_among_other_things_is_capacity(new_world: NewWorld) -> None:
    world = world_with(new_world, TargetResources=["hyperpod-cluster", "training-job"])
    submitted(world)
    world.schedule()
    assert on_the_plan(world) == ["job"]


def test_more_than_the_plan_or_the_pool_has_is_refused_with_what_would_fit(new_world: NewWorld) -> None:
    world = world_with(new_world, capacity=1)
    assert refusal(submitted(world, count=3, arn=SPRING))[2:] == (
        f"the job asks for 3, but plan spring has 2 {A} in all",
        "ask for at most 2",
    )
    assert refusal(submitted(world, count=3))[2:] == (
        f"asks for 3, but pool main has 1 on-demand {A}, and 2 on a training plan, in all",
        "ask for at most 2",
    )
    assert submitted(world, count=2)["status"] == 201


def test_a_plan_without_instances_is_not_offered(new_world: NewWorld) -> None:
    world = world_with(new_world, TotalInstanceCount=0)
    assert refusal(submitted(world, arn=SPRING))[3] == "leave the plan out"


def test_a_plan_with_nothing_but_broken_instances_is_waited_for(new_world: NewWorld) -> None:
    world = world_with(new_world, UnhealthyInstanceCount=2)
    submitted(world, arn=SPRING)
    world.schedule()
    assert world.states("job") == ["pending"]


@pytest.mark.parametrize(
    ("fee", "usd"),
    [
        pytest.param({"UpfrontFee": "9,600.00"}, 9600.0, id="with commas"),
        pytest.param({"UpfrontFee": "free"}, None, id="no amount"),
        pytest.param({"UpfrontFee": "9600", "CurrencyCode": "CNY"}, None, id="another currency"),
    ],
)
def test_a_fee_counts_only_if_it_is_dollars(new_world: NewWorld, fee: dict[str, Any], usd: float) -> None:
    (view,) = world_with(new_world, **fee).api("GET", "/pools")["pools"][0]["plans"]
    assert view["fee_usd"] == usd


@pytest.mark.parametrize("way", [{"arn": SPRING}, {"Tags": [ONLY]}])
def test_a_job_that_asks_for_a_warm_pool_too_gets_the_plan_without_one(
    new_world: NewWorld, way: dict[str, Any]
) -> None:
    world = world_with(new_world)
    submitted(world, keep_alive=600, **way)
    world.schedule()
    resources = world.sagemaker.live()["job"].request["ResourceConfig"]
    assert resources["TrainingPlanArn"] == SPRING
    assert "KeepAlivePeriodInSeconds" not in resources


def test_a_spot_job_is_created_without_spot_on_the_plan(new_world: NewWorld) -> None:
    rules = policy()
    rules["pools"][0]["spot_capacity"] = {A: 1}
    world = new_world(rules)
    world.sagemaker.plans["spring"] = described((0, 6))
    world.reconcile()
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    spot: dict[str, Any] = {"EnableManagedSpotTraining": True, "StoppingCondition": stopping}
    submitted(world, CheckpointConfig={"S3Uri": "s3://bucket/job"}, **spot)
    world.schedule()
    created = world.sagemaker.live()["job"].request
    assert created["ResourceConfig"]["TrainingPlanArn"] == SPRING
    assert not created["EnableManagedSpotTraining"]
    assert created["StoppingCondition"] == {"MaxRuntimeInSeconds": 3600}


def test_a_job_that_bypassed_the_queue_on_a_plan_of_no_pool_takes_nothing_from_the_pool(
    new_world: NewWorld,
) -> None:
    world = new_world(policy(capacity=1) | {"unmanaged_jobs": {"then": "adopt"}})
    world.sagemaker.plans["spring"] = described((0, 9), instances=1)
    world.reconcile()
    outside = request("outside")
    outside["ResourceConfig"] |= {"TrainingPlanArn": SPRING.replace("spring", "autumn")}
    world.sagemaker.run_outside(outside, training_since=NOON)
    world.tell("outside")
    submitted(world, "on-demand", Tags=[{"Key": "trainmaster:plan", "Value": "never"}])
    submitted(world, "on-plan", arn=SPRING)
    world.schedule()
    assert world.states("outside", "on-demand", "on-plan") == ["running"] * 3
    assert world.wiring.reader.pool_state("main").used[ON_PLAN] == 1
