"""Jobs on a training plan: they wait for its windows, run in them, and lose their instances with them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from local.sagemaker.container_environment import BLOCK_END
from local.sagemaker.training_plans import Window
from local.wire import AwsError
from tests.integration.local.sagemaker_world import (
    BUCKET,
    UNTIL_TRAINING_SECONDS,
    World,
    fast_clock,
    manual_clock,
    open_world,
    python,
    wait_for,
)

P5 = "ml.p5.48xlarge"
MINUTE, HOUR = 60, 3600
COUNTS = python(
    """
import os, pathlib, signal
state = pathlib.Path("/opt/ml/checkpoints/step")
step = int(state.read_text()) if state.exists() else 0
print(f"begins at {step}", flush=True)
state.write_text(str(step + 1))
signal.pause()
"""
)
"""A program that counts its starts in its checkpoint, and never ends by itself."""


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def buy(world: World, *windows: tuple[float, float], instances: int = 2, name: str = "spring") -> str:
    """Buy a plan whose windows are hours from now."""
    now = world.clock.now()
    bought = [
        Window(begin=now + timedelta(hours=begin), end=now + timedelta(hours=end)) for begin, end in windows
    ]
    return world.twin.buy_plan(name, instance_type=P5, instances=instances, windows=bought, fee_usd=1000.0)


def on(arn: str, *, count: int = 1, **changes: Any) -> dict[str, Any]:
    resources = {"InstanceType": P5, "InstanceCount": count, "VolumeSizeInGB": 1, "TrainingPlanArn": arn}
    return {
        "ResourceConfig": resources,
        "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/checkpoints/"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 100 * HOUR},
    } | changes


def plan(world: World, arn: str) -> dict[str, Any]:
    return world.call("DescribeTrainingPlan", TrainingPlanName=arn)


def counts(world: World, arn: str) -> tuple[int, int]:
    """In use, available."""
    shown = plan(world, arn)
    return shown["InUseInstanceCount"], shown["AvailableInstanceCount"]


def walk(world: World, job: str) -> list[str]:
    return [step["Status"] for step in world.describe(job)["SecondaryStatusTransitions"]]


def test_a_job_waits_for_the_window_and_runs_in_it(world: World):
    arn = buy(world, (1, 5))
    world.create("job", COUNTS, **on(arn))
    world.advance(HOUR - 1)
    assert (world.secondary("job"), plan(world, arn)["Status"]) == ("Pending", "Scheduled")

    world.advance(1 + UNTIL_TRAINING_SECONDS)

    assert (world.secondary("job"), plan(world, arn)["Status"]) == ("Training", "Active")
    assert counts(world, arn) == (1, 1)
    assert world.describe("job")["ResourceConfig"]["TrainingPlanArn"] == arn
    assert world.events.published[-1][0]["ResourceConfig"]["TrainingPlanArn"] == arn


def test_30_minutes_before_the_end_its_instances_are_gone_and_nothing_starts(world: World):
    arn = buy(world, (0, 2))
    world.train("job", COUNTS, **on(arn))
    world.advance(90 * MINUTE - UNTIL_TRAINING_SECONDS - 1)
    assert world.secondary("job") == "Training"

    world.advance(1)

    assert world.secondary("job") == "Pending"
    assert world.twin.training_jobs()[0]["pids"] == []
    assert counts(world, arn) == (0, 0)
    assert ("signal", "SIGTERM", None) not in world.process_events("job")
    world.create("late", COUNTS, **on(arn))
    world.advance(29 * MINUTE)
    assert world.secondary("late") == "Pending"


def test_between_two_windows_a_job_is_pending_and_goes_on_from_its_checkpoint(world: World):
    arn = buy(world, (0, 2), (5, 9))
    world.train("job", COUNTS, **on(arn))
    world.wait_for_line("job", "begins at 0")
    world.wait_for_object("checkpoints/step", b"1")
    world.advance(4 * HOUR)
    assert (world.secondary("job"), plan(world, arn)["Status"]) == ("Pending", "Scheduled")

    world.advance(HOUR + UNTIL_TRAINING_SECONDS)

    world.wait_for_line("job", "begins at 1")
    assert walk(world, "job") == [
        "Starting",
        "Pending",
        "Downloading",
        "Training",
        "Pending",
        "Downloading",
        "Training",
    ]
    world.stop("job")
    world.advance(10 * MINUTE)
    ended = world.finished("job")
    assert ended["TrainingTimeInSeconds"] > 5 * HOUR
    assert ended["BillableTimeInSeconds"] < 2 * HOUR


def test_after_the_last_window_a_job_fails(world: World):
    arn = buy(world, (0, 2))
    world.train("job", COUNTS, **on(arn))
    world.advance(2 * HOUR)

    ended = world.finished("job")
    assert (ended["TrainingJobStatus"], ended["FailureReason"].split(":")[0]) == (
        "Failed",
        "InsufficientCapacityError",
    )
    assert plan(world, arn)["Status"] == "Expired"


def test_what_does_not_fit_waits_until_another_job_ends(world: World):
    arn = buy(world, (0, 9))
    world.train("first", COUNTS, **on(arn, count=2))
    world.create("second", COUNTS, **on(arn))
    world.create("third", COUNTS, **on(arn))
    world.advance(HOUR)
    assert (world.secondary("second"), world.secondary("third")) == ("Pending", "Pending")
    assert counts(world, arn) == (2, 0)

    world.stop("first")
    world.advance(10 * MINUTE)

    assert (world.secondary("second"), world.secondary("third")) == ("Training", "Training")


def test_a_job_is_pending_for_two_days_of_open_windows_and_then_fails(world: World):
    arn = buy(world, (10, 34), (100, 160))
    world.create("large", COUNTS, **on(arn, count=3))
    world.advance((100 + 24) * HOUR - 1)
    assert world.secondary("large") == "Pending"

    world.advance(60)

    assert "2 days" in world.finished("large")["FailureReason"]


def test_its_own_pending_limit_counts_open_windows_alone_and_stops_it(world: World):
    arn = buy(world, (10, 34))
    limit = {"MaxRuntimeInSeconds": 2 * HOUR, "MaxPendingTimeInSeconds": 2 * HOUR}
    world.create("large", COUNTS, **on(arn, count=3, StoppingCondition=limit))
    world.advance(12 * HOUR - 1)
    assert world.secondary("large") == "Pending"

    world.advance(60)

    assert world.finished("large")["TrainingJobStatus"] == "Stopped"


def test_a_job_that_waits_can_be_stopped(world: World):
    arn = buy(world, (10, 34))
    world.create("job", COUNTS, **on(arn))
    world.advance(HOUR)
    world.stop("job")
    world.advance(MINUTE)

    assert world.finished("job")["TrainingJobStatus"] == "Stopped"
    assert counts(world, arn) == (0, 0)


def test_an_extension_keeps_what_runs_and_unhealthy_instances_hold_the_next_back(world: World):
    arn = buy(world, (0, 2))
    world.train("job", COUNTS, **on(arn))
    later = world.clock.now() + timedelta(hours=10)
    world.twin.change_plan("spring", unhealthy=1, extend_to=later, failure=None)
    world.create("next", COUNTS, **on(arn))
    world.advance(3 * HOUR)
    assert (world.secondary("job"), world.secondary("next")) == ("Training", "Pending")

    world.twin.change_plan("spring", unhealthy=0, extend_to=None, failure=None)
    world.advance(UNTIL_TRAINING_SECONDS)

    assert (world.secondary("job"), world.secondary("next")) == ("Training", "Training")


def test_a_plan_leaves_the_account_its_quota_on_demand(world: World):
    world.in_force.set({"quotas": {P5: 1}})
    arn = buy(world, (0, 9))
    for name in ("one", "two"):
        world.create(name, COUNTS, **on(arn))
    resources = {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1}
    world.create("on-demand", COUNTS, ResourceConfig=resources)

    with pytest.raises(AwsError, match="account-level service limit"):
        world.create("too-many", COUNTS, ResourceConfig=resources)


def test_jobs_are_listed_by_their_plan(world: World):
    arn, other = buy(world, (1, 5)), buy(world, (1, 5), name="autumn")
    world.create("here", **on(arn))
    world.create("there", **on(other))
    world.create("on-demand")

    listed = world.call("ListTrainingJobs", TrainingPlanArnEquals=arn)["TrainingJobSummaries"]
    assert [job["TrainingJobName"] for job in listed] == ["here"]


def test_the_container_hears_the_end_of_its_window_in_milliseconds(tmp_path):
    """On the machine's clock it is the window's end; a manual clock shifts it to the machine's."""
    says = python(f"import os; print(os.environ.get({BLOCK_END!r}, 'nothing'), flush=True)")
    with open_world(tmp_path, fast_clock()) as world:
        arn = buy(world, (0, 2))
        end = plan(world, arn)["EndTime"]
        world.create("job", says, **on(arn))
        world.create("on-demand", says)
        wait_for(lambda: bool(world.logs.messages("job")), "the job says it")
        assert abs(int(world.logs.messages("job")[0]) - end * 1000) < 1.5
        wait_for(lambda: world.logs.messages("on-demand") == ["nothing"], "the other says nothing")


def test_on_a_manual_clock_the_time_left_is_right(world: World):
    says = python(
        f"import os, time; print(int(os.environ[{BLOCK_END!r}]) // 1000 - round(time.time()), flush=True)"
    )
    world.advance(500 * HOUR)  # away from the machine's clock
    arn = buy(world, (0, 2))
    world.create("job", says, **on(arn))
    world.advance(UNTIL_TRAINING_SECONDS)
    wait_for(lambda: bool(world.logs.messages("job")), "the job says it")

    left = int(world.logs.messages("job")[0])
    assert 2 * HOUR - UNTIL_TRAINING_SECONDS - 30 < left <= 2 * HOUR


def test_an_offering_is_found_bought_and_used(world: World):
    question = {"InstanceType": P5, "InstanceCount": 2, "DurationHours": 48}
    found = world.call("SearchTrainingPlanOfferings", **question)["TrainingPlanOfferings"]
    arn = world.call(
        "CreateTrainingPlan",
        TrainingPlanName="summer",
        TrainingPlanOfferingId=found[1]["TrainingPlanOfferingId"],
    )["TrainingPlanArn"]
    assert plan(world, arn)["Status"] == "Pending"
    with pytest.raises(AwsError, match="in status Pending"):
        world.create("early", **on(arn))

    world.advance(2 * MINUTE)

    shown = plan(world, "summer")
    assert (shown["Status"], shown["UpfrontFee"]) == ("Scheduled", found[1]["UpfrontFee"])
    assert (shown["DurationHours"], shown["TotalInstanceCount"]) == (48, 2)
    world.create("job", COUNTS, **on(arn))
    world.advance(25 * HOUR)
    assert world.secondary("job") == "Training"


@pytest.mark.parametrize(
    ("operation", "params", "code"),
    [
        pytest.param("DescribeTrainingPlan", {"TrainingPlanName": "none"}, "ResourceNotFound", id="no plan"),
        pytest.param(
            "CreateTrainingPlan",
            {"TrainingPlanName": "a", "TrainingPlanOfferingId": "tpo-1"},
            "ResourceNotFound",
            id="an offering that nobody found",
        ),
        pytest.param("ListTrainingPlans", {"NextToken": "?"}, "ValidationException", id="no token"),
        pytest.param(
            "SearchTrainingPlanOfferings",
            {"InstanceType": "ml.m5.large"},
            "ValidationException",
            id="a type without plans",
        ),
    ],
)
def test_wrong_questions_are_refused(world: World, operation, params, code):
    with pytest.raises(AwsError) as caught:
        world.call(operation, **params)
    assert caught.value.code == code


def test_plans_are_listed_by_status_and_start(world: World):
    for name, begin in (("a", 1), ("b", 0), ("c", 2)):
        buy(world, (begin, begin + 1), name=name)

    def names(**params: Any) -> list[str]:
        shown = world.call("ListTrainingPlans", **params)["TrainingPlanSummaries"]
        return [summary["TrainingPlanName"] for summary in shown]

    assert names() == ["c", "a", "b"]
    assert names(SortBy="TrainingPlanName", SortOrder="Ascending") == ["a", "b", "c"]
    assert names(Filters=[{"Name": "Status", "Value": "Active"}]) == ["b"]
    first = world.call("ListTrainingPlans", MaxResults=2)
    assert names(NextToken=first["NextToken"]) == ["b"]
