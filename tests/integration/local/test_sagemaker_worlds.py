"""The training twin in other worlds: what it refuses, hides, delays, and how a pending time ends."""

import time
from collections.abc import Iterator

import pytest

from local.wire import AwsError
from local.worlds import HARSH, PendingEnd, shown
from local.worlds.world_reading import OPERATIONS
from tests.integration.local.sagemaker_world import (
    World,
    fast_clock,
    manual_clock,
    open_world,
    request,
    wait_for,
)

RESOURCES = request("job")["ResourceConfig"]
TYPE = RESOURCES["InstanceType"]


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def code_of(call) -> str | None:
    try:
        call()
    except AwsError as error:
        return error.code
    return None


def test_a_rate_can_be_set_for_each_operation_about_training_jobs(world: World):
    assert [name for name in OPERATIONS if not world.twin.owns(name, {})] == []
    assert not world.twin.owns("CreateEndpoint", {})


@pytest.mark.parametrize(
    ("values", "changes", "says"),
    [
        pytest.param(
            {"missing_types": [TYPE]}, {}, f"training-job/{TYPE} is not available in this region", id="type"
        ),
        pytest.param(
            {"max_instances_per_job": 2},
            {"ResourceConfig": RESOURCES | {"InstanceCount": 3}},
            "a request delta of 3 Instances",
            id="instances",
        ),
        pytest.param(
            {"max_runtime_seconds": 60}, {}, "'Longest run time for a training job' is 60", id="run time"
        ),
        pytest.param(
            {"max_keep_alive_seconds": 60},
            {"ResourceConfig": RESOURCES | {"KeepAlivePeriodInSeconds": 61}},
            "'Keep alive period for cluster reuse' is 60 Seconds",
            id="keep-alive",
        ),
        pytest.param(
            {"quotas": {TYPE: 0}}, {}, f"'{TYPE} for training job usage' is 0 Instances", id="quota"
        ),
    ],
)
def test_a_limit_of_the_world_refuses_a_job_and_leaves_nothing(world: World, values, changes, says):
    world.in_force.set(values)
    with pytest.raises(AwsError, match=says) as caught:
        world.create("job", **changes)
    assert caught.value.code == "ResourceLimitExceeded"
    assert world.twin.training_jobs() == []
    assert world.events.published == []


def test_a_new_job_cannot_be_read_for_a_while_but_its_name_is_taken_and_it_can_be_stopped(world: World):
    world.in_force.set({"read_delay_seconds": 5})
    arn = world.create("job", ["sleep", "60"])
    assert code_of(lambda: world.describe("job")) == "ValidationException"
    assert code_of(lambda: world.call("ListTags", ResourceArn=arn)) == "ValidationException"
    assert world.call("ListTrainingJobs")["TrainingJobSummaries"] == []
    assert code_of(lambda: world.create("job")) == "ResourceInUse"
    world.stop("job")
    world.advance(5)
    assert world.describe("job")["TrainingJobStatus"] == "Stopping"
    assert world.call("ListTags", ResourceArn=arn) == {"Tags": []}
    assert len(world.call("ListTrainingJobs")["TrainingJobSummaries"]) == 1


def test_a_kept_pool_above_its_quota_is_gone_at_the_end_of_the_job(world: World):
    world.in_force.set({"warm_pool_quota": 0})
    left = []
    for name in ("terminated", "missing"):  # as their draws come out
        kept = {"ResourceConfig": RESOURCES | {"KeepAlivePeriodInSeconds": 600}}
        world.train_to_end(name, ["true"], **kept)
        left.append(world.describe(name).get("WarmPoolStatus"))
    assert left == [{"Status": "Terminated"}, None]


def test_a_pool_is_kept_as_far_as_the_quota_goes(world: World):
    world.in_force.set({"warm_pool_quota": 1})
    for name, seconds in (("first", 600), ("second", 601)):
        kept = {
            "ResourceConfig": RESOURCES | {"KeepAlivePeriodInSeconds": seconds, "VolumeSizeInGB": seconds}
        }
        world.train_to_end(name, ["true"], **kept)
    assert world.describe("first")["WarmPoolStatus"]["Status"] == "Available"
    assert world.describe("second").get("WarmPoolStatus") in (None, {"Status": "Terminated"})


def test_a_keep_alive_above_the_limit_is_refused_when_it_is_updated_too(world: World):
    world.train_to_end("job", ["true"], ResourceConfig=RESOURCES | {"KeepAlivePeriodInSeconds": 600})
    world.in_force.set({"max_keep_alive_seconds": 3600})

    def keep(seconds: int) -> str | None:
        resources = {"KeepAlivePeriodInSeconds": seconds}
        return code_of(
            lambda: world.call("UpdateTrainingJob", TrainingJobName="job", ResourceConfig=resources)
        )

    assert keep(3601) == "ResourceLimitExceeded"
    assert keep(3600) is None


def starving(world: World, dialect: str | None, name: str = "job") -> None:
    """A job that is pending for half an hour at most and never gets its instances."""
    world.in_force.set({"pending_end": dialect})
    world.twin.withhold_capacity(TYPE, 1)
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 1800}
    world.create(name, ["sleep", "60"], StoppingCondition=stopping)
    world.advance(100)


@pytest.mark.parametrize(
    ("dialect", "ends_as"),
    [
        ("Stopped/MaxPendingTimeExceeded", ("Stopped", "MaxPendingTimeExceeded", None)),
        ("Stopped/Stopped", ("Stopped", "Stopped", None)),
        ("Stopped/MaxRuntimeExceeded", ("Stopped", "MaxRuntimeExceeded", None)),
        ("Failed/CapacityError", ("Failed", "Failed", "CapacityError")),
        ("Failed/other", ("Failed", "Failed", "InternalServerError")),
    ],
)
def test_a_pending_time_that_runs_out_ends_the_job_in_the_dialect_of_the_world(
    world: World, dialect: str, ends_as: tuple[str, str, str | None]
):
    starving(world, dialect)
    assert world.secondary("job") == "Pending"
    world.advance(1700)
    assert world.secondary("job") == "Pending"
    world.advance(100)
    done = world.describe("job")
    reason = done.get("FailureReason")
    assert (
        done["TrainingJobStatus"],
        done["SecondaryStatus"],
        reason.partition(":")[0] if reason else None,
    ) == ends_as
    assert "TrainingStartTime" not in done
    assert world.events.statuses("job")[-1] == ends_as[:2]


def test_mixed_ends_jobs_in_several_dialects(world: World):
    for number in range(8):
        starving(world, PendingEnd.MIXED, f"job-{number}")
    world.advance(1800)
    ends = {
        (done["TrainingJobStatus"], done["SecondaryStatus"])
        for number in range(8)
        if (done := world.describe(f"job-{number}"))
    }
    assert len(ends) > 1
    assert {status for status, _ in ends} <= {"Stopped", "Failed"}


def test_a_job_that_is_stopped_while_it_is_pending_is_stopped(world: World):
    starving(world, "Failed/other")
    world.stop("job")
    world.advance(20)
    assert world.describe("job")["SecondaryStatus"] == "Stopped"


def test_in_a_kind_world_a_job_without_instances_fails_at_once(world: World):
    starving(world, None)
    assert world.describe("job")["FailureReason"].startswith("CapacityError:")


def test_events_come_late_without_tags_and_twice_where_the_world_says_so(world: World):
    world.in_force.set({"event_delay_seconds": [300, 300], "events_doubled": 1, "events_without_tags": 1})
    world.create("job", ["sleep", "60"], Tags=[{"Key": "team", "Value": "blue"}])
    assert world.events.published == []
    world.advance(299)
    assert world.events.statuses("job") == []
    world.advance(1)
    assert world.events.statuses("job")[:2] == [("InProgress", "Starting")] * 2
    assert all("Tags" not in detail for detail, _ in world.events.published)


def test_reordered_events_overtake_each_other(world: World):
    world.in_force.set({"events_reordered": 1})
    for number in range(10):
        world.create(f"job-{number}", ["sleep", "60"])
    world.advance(60)
    first = [
        detail["TrainingJobName"]
        for detail, _ in world.events.published
        if detail["SecondaryStatus"] == "Starting"
    ]
    assert sorted(first) == [f"job-{number}" for number in range(10)]
    assert first != sorted(first)


def test_calls_take_their_time_on_a_real_clock_and_a_rate_is_one_of_real_seconds(tmp_path):
    with open_world(tmp_path, fast_clock()) as world:
        world.in_force.set({"latency_seconds": {"p50": 0.05, "p99": 0.05}, "rates": {"ListTrainingJobs": 5}})
        begun = time.monotonic()
        codes = [code_of(lambda: world.call("ListTrainingJobs")) for _ in range(5)]
        assert codes == [None] * 5
        assert time.monotonic() - begun >= 0.25
        world.in_force.set({"latency_seconds": None, "rates": {"StopTrainingJob": 0.001}})
        assert [code_of(lambda: world.stop("nobody")) for _ in range(2)] == [
            "ValidationException",
            "ThrottlingException",
        ]
        assert world.twin.throttled() == {"StopTrainingJob": 1}


def test_a_call_never_moves_a_manual_clock_and_never_waits(world: World):
    world.in_force.set({"latency_seconds": {"p50": 3000, "p99": 3000}})
    begun, now = time.monotonic(), world.clock.now()
    world.create("job", ["sleep", "60"])
    assert world.describe("job")["SecondaryStatus"] == "Starting"
    assert time.monotonic() - begun < 60
    assert world.clock.now() == now


def test_the_harsh_world_runs_a_job_to_its_end(world: World):
    world.in_force.set(shown(HARSH))
    world.create("job")
    assert code_of(lambda: world.create("other")) == "ThrottlingException"
    world.advance(100)
    ended = wait_for_end(world)
    assert ended["status"] == "Completed"
    assert world.describe("job")["TrainingJobStatus"] == "Completed"
    world.advance(360)
    assert ("Completed", "Completed") in world.events.statuses("job")


def wait_for_end(world: World) -> dict[str, object]:
    """Asked of the twin itself, which throttles nobody."""

    def the_job() -> dict[str, object]:
        (job,) = world.twin.training_jobs()
        return job

    wait_for(lambda: the_job()["secondary_status"] in {"Uploading", "Completed"}, "the container ends")
    world.advance(100)
    wait_for(lambda: the_job()["ended_at"] is not None, "the job ends")
    return the_job()
