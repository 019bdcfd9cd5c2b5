"""What the account may run at once."""

from collections.abc import Iterator

import pytest

from local.wire import AwsError
from tests.integration.local.sagemaker_world import World, manual_clock, open_world, request

TYPE = request("job")["ResourceConfig"]["InstanceType"]


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def test_above_a_quota_the_account_refuses_with_the_numbers_and_below_it_does_not(world: World):
    world.in_force.set_quota(TYPE, "on-demand", 1)
    world.create("one", ["sleep", "60"])
    with pytest.raises(AwsError) as caught:
        world.create("two", ["sleep", "60"])
    assert caught.value.code == "ResourceLimitExceeded"
    assert caught.value.message == (
        f"The account-level service limit '{TYPE} for training job usage' is 1 Instances, with current "
        "utilization of 1 Instances and a request delta of 1 Instances. Please use AWS Service Quotas to "
        "request an increase for this quota. If AWS Service Quotas is not available, contact AWS support to "
        "request an increase for this quota."
    )
    assert [job["name"] for job in world.twin.training_jobs()] == ["one"]


def test_warm_instances_count_but_for_the_job_that_takes_them(world: World):
    kept = {"ResourceConfig": request("job")["ResourceConfig"] | {"KeepAlivePeriodInSeconds": 600}}
    world.train_to_end("first", ["true"], **kept)
    world.in_force.set_quota(TYPE, "on-demand", 1)
    with pytest.raises(AwsError, match="with current utilization of 1 Instances and a request delta of 1"):
        world.create("cold", ["sleep", "60"])
    world.create("warm", ["sleep", "60"], **kept)
    assert world.describe("first")["WarmPoolStatus"]["Status"] == "Reused"


def test_spot_and_on_demand_have_quotas_of_their_own(world: World):
    world.in_force.set_quota(TYPE, "spot", 0)
    world.create("one", ["sleep", "60"])
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
    }
    with pytest.raises(AwsError, match="for spot training job usage' is 0"):
        world.create("two", ["sleep", "60"], **spot)
