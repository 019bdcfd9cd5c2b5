"""From Create to the end: statuses, events, times, and what is left in S3."""

import threading
import time
from pathlib import Path

import pytest

from local.clock import TwinClock
from local.wire import AwsError
from tests.integration.local.sagemaker_world import (
    BUCKET,
    CALLER,
    World,
    fast_clock,
    manual_clock,
    open_world,
    python,
    request,
    wait_for,
)

SAVES_TOKEN = ["sh", "-c", "echo token > $SM_MODEL_DIR/t; echo more > $SM_OUTPUT_DATA_DIR/m"]
WALK = [
    ("InProgress", "Starting"),
    ("InProgress", "Pending"),
    ("InProgress", "Downloading"),
    ("InProgress", "Training"),
    ("InProgress", "Uploading"),
    ("Completed", "Completed"),
]


@pytest.fixture
def world(tmp_path):
    """Time stands still unless a test advances it."""
    with open_world(tmp_path, manual_clock()) as world:
        yield world


@pytest.fixture
def quick(tmp_path):
    """Time passes, fast."""
    with open_world(tmp_path, fast_clock()) as world:
        yield world


def transitions(description) -> list[str]:
    return [one["Status"] for one in description["SecondaryStatusTransitions"]]


def test_a_job_walks_only_as_the_clock_advances(world: World):
    world.create("job", ["sleep", "60"])
    seen = []
    for _ in range(10):
        seen.append(world.secondary("job"))
        world.advance(10)

    assert sorted(set(seen), key=seen.index) == ["Starting", "Pending", "Downloading", "Training"]


def test_a_finished_job_stays_in_uploading_until_the_clock_advances(world: World):
    world.train("job", ["sleep", "0.4"])
    world.wait_until("job", "Uploading")
    world.advance(30)

    assert world.secondary("job") == "Completed"


def test_a_job_that_does_next_to_nothing_ends_at_the_instant_it_starts(world: World):
    world.create("job")
    world.advance(3600)

    shown = world.describe("job")
    assert shown["TrainingJobStatus"] == "Completed"
    assert shown["TrainingEndTime"] < shown["CreationTime"] + 120


def test_each_step_is_an_event_with_the_state_of_that_moment(quick: World):
    arn = quick.create("job", Tags=[{"Key": "team", "Value": "vision"}])
    quick.finished("job")

    assert quick.events.statuses("job") == WALK
    detail, resources = quick.events.published[-1]
    assert resources == [arn]
    assert detail["Tags"] == {"team": "vision"}
    assert [one["Status"] for one in detail["SecondaryStatusTransitions"]] == [status for _, status in WALK]
    assert [len(one["SecondaryStatusTransitions"]) for one, _ in quick.events.published] == [1, 2, 3, 4, 5, 6]


def test_a_completed_job_has_left_its_model_and_output_in_s3(quick: World):
    quick.create("job", SAVES_TOKEN)
    shown = quick.finished("job")

    assert shown["TrainingJobStatus"] == "Completed"
    assert shown["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{BUCKET}/output/job/output/model.tar.gz"
    assert quick.archive("output/job/output/model.tar.gz") == {"t": b"token\n"}
    assert quick.archive("output/job/output/output.tar.gz") == {"m": b"more\n"}
    assert shown["TrainingTimeInSeconds"] >= 1
    assert "FailureReason" not in shown


def test_an_uncompressed_model_is_a_folder_in_s3(quick: World):
    output = {"S3OutputPath": f"s3://{BUCKET}/output/", "CompressionType": "NONE"}
    quick.create(
        "job", ["sh", "-c", "mkdir $SM_MODEL_DIR/a; echo x > $SM_MODEL_DIR/a/b"], OutputDataConfig=output
    )
    quick.finished("job")

    assert quick.store.objects[BUCKET] == {"output/job/output/model/a/b": b"x\n"}


def test_a_job_that_saves_nothing_leaves_nothing(quick: World):
    quick.create("job")
    quick.finished("job")

    assert quick.store.objects[BUCKET] == {}
    assert list(quick.work_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param(["sh", "-c", "exit 7"], "AlgorithmError: , exit code: 7", id="no failure file"),
        pytest.param(
            ["sh", "-c", "echo out of luck > /opt/ml/output/failure; exit 1"],
            "AlgorithmError: out of luck\n, exit code: 1",
            id="a failure file",
        ),
        pytest.param(["/no/such"], "AlgorithmError: , exit code: 127", id="no such command"),
        pytest.param(["sh", "-c", "kill -9 $$"], "AlgorithmError: , exit code: 137", id="killed from inside"),
        pytest.param(
            python("open('/opt/ml/output/failure', 'w').write('x' * 5000); raise SystemExit(2)"),
            "AlgorithmError: " + "x" * (1024 - 16 - 14) + ", exit code: 2",
            id="a long failure file",
        ),
    ],
)
def test_a_command_that_fails_fails_the_job(quick: World, command, reason):
    quick.create("job", command)
    shown = quick.finished("job")

    assert (shown["TrainingJobStatus"], shown["SecondaryStatus"]) == ("Failed", "Failed")
    assert shown["FailureReason"] == reason
    assert transitions(shown) == ["Starting", "Pending", "Downloading", "Training", "Failed"]
    assert "FailureReason" not in quick.events.published[-1][0]


def test_a_job_that_brings_nothing_to_run_fails_with_a_hint(quick: World):
    algorithm = request("job")["AlgorithmSpecification"]
    del algorithm["ContainerEntrypoint"]
    quick.create("job", AlgorithmSpecification=algorithm)
    shown = quick.finished("job")

    assert shown["TrainingJobStatus"] == "Failed"
    assert "ContainerEntrypoint" in shown["FailureReason"]


def test_all_lines_are_in_the_log_when_the_end_is_visible(quick: World):
    quick.create("job", python("for number in range(5000): print(number)\nprint('no newline', end='')"))
    quick.finished("job")

    assert quick.logs.messages("job") == [*map(str, range(5000)), "no newline"]
    assert {group for group, _, _ in quick.logs.puts} == {"/aws/sagemaker/TrainingJobs"}
    assert {stream.rsplit("-", 1)[0] for _, stream, _ in quick.logs.puts} == {"job/algo-1"}


def test_lines_are_in_the_log_while_the_job_runs(world: World):
    world.train("job", python("print('here', flush=True); import time; time.sleep(60)"))

    world.wait_for_line("job", "here")
    assert world.secondary("job") == "Training"


def test_the_journal_has_the_process(quick: World):
    quick.create("job", ["sh", "-c", "exit 3"])
    quick.finished("job")

    assert quick.process_events("job") == [("start", None, None), ("exit", None, 3)]
    assert len({line["pid"] for line in quick.journal_lines()}) == 1


def test_the_operator_sees_the_processes_of_a_running_job(world: World):
    world.train("job", ["sleep", "60"], Tags=[{"Key": "team", "Value": "vision"}])

    shown = world.twin.training_jobs()[0]

    pids = [line["pid"] for line in world.journal_lines() if line["event"] == "start"]
    assert shown["pids"] == pids
    assert (shown["name"], shown["status"], shown["secondary_status"]) == ("job", "InProgress", "Training")
    assert (shown["instance_type"], shown["instance_count"]) == ("ml.m5.large", 1)
    assert shown["tags"] == {"team": "vision"}
    assert shown["created_by"] == CALLER.arn


def test_a_name_is_unique_until_the_job_is_deleted(quick: World):
    arn = quick.create("job")
    quick.finished("job")
    with pytest.raises(AwsError) as caught:
        quick.create("job")
    assert caught.value.code == "ResourceInUse"
    assert caught.value.message == (
        "Training job names must be unique within an AWS account and region, and a training job with this "
        f"name already exists ({arn})"
    )

    quick.call("DeleteTrainingJob", TrainingJobName="job")
    with pytest.raises(AwsError, match="Requested resource not found"):
        quick.describe("job")
    quick.create("job")
    assert quick.finished("job")["TrainingJobStatus"] == "Completed"


def test_of_many_creates_of_one_name_just_one_is_accepted(quick: World):
    accepted, refused = [], []

    def create() -> None:
        try:
            accepted.append(quick.create("job"))
        except AwsError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=create) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(accepted) == 1
    assert refused == ["ResourceInUse"] * 11
    quick.finished("job")
    assert [event for event, _, _ in quick.process_events("job")] == ["start", "exit"]


@pytest.mark.parametrize("operation", ["DeleteTrainingJob", "UpdateTrainingJob"])
def test_a_running_job_can_neither_be_deleted_nor_its_warm_pool_changed(world: World, operation):
    world.create("job")
    more = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 0}} if operation == "UpdateTrainingJob" else {}

    with pytest.raises(AwsError) as caught:
        world.call(operation, TrainingJobName="job", **more)

    assert caught.value.code == {"DeleteTrainingJob": "ResourceInUse"}.get(operation, "ValidationException")


@pytest.mark.parametrize(
    "operation", ["DescribeTrainingJob", "StopTrainingJob", "DeleteTrainingJob", "UpdateTrainingJob"]
)
def test_an_unknown_job_is_a_validation_error(world: World, operation):
    with pytest.raises(AwsError) as caught:
        world.call(operation, TrainingJobName="none")

    assert (caught.value.code, caught.value.message) == (
        "ValidationException",
        "Requested resource not found.",
    )


def test_a_refused_job_does_not_exist(world: World):
    with pytest.raises(AwsError, match="does not exist"):
        world.create("job", OutputDataConfig={"S3OutputPath": "s3://nowhere/x"})

    assert world.twin.training_jobs() == []
    assert world.events.published == []


def test_tags_can_be_added_listed_and_deleted(world: World):
    arn = world.create("job", Tags=[{"Key": "a", "Value": "1"}])

    added = world.call(
        "AddTags", ResourceArn=arn, Tags=[{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "3"}]
    )
    world.call("DeleteTags", ResourceArn=arn, TagKeys=["b"])

    assert added == {"Tags": [{"Key": "a", "Value": "3"}, {"Key": "b", "Value": "2"}]}
    assert world.call("ListTags", ResourceArn=arn) == {"Tags": [{"Key": "a", "Value": "3"}]}
    assert world.twin.resource_tags(arn) == {"a": "3"}


def test_a_job_has_at_most_50_tags(world: World):
    arn = world.create("job", Tags=[{"Key": str(number), "Value": ""} for number in range(50)])

    with pytest.raises(AwsError):
        world.call("AddTags", ResourceArn=arn, Tags=[{"Key": "one more", "Value": ""}])


def test_the_tags_of_an_unknown_resource_are_not_found(world: World):
    arn = world.create("job").replace("us-east-1", "eu-west-1")

    assert world.twin.resource_tags(arn) is None
    assert world.twin.resource_tags("job") is None
    with pytest.raises(AwsError, match="Requested resource not found"):
        world.call("ListTags", ResourceArn=arn)


def test_an_operation_that_is_not_emulated_is_refused(world: World):
    with pytest.raises(AwsError) as caught:
        world.call("CreateModel")

    assert caught.value.code == "UnknownOperationException"


def test_training_jobs_and_their_tags_are_the_twins_own(world: World):
    endpoint = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/e"

    assert world.twin.owns("CreateTrainingJob", {})
    assert world.twin.owns("ListTags", {"ResourceArn": world.create("job")})
    assert world.twin.owns("AddTags", {"ResourceArn": "job"})
    assert not world.twin.owns("ListTags", {"ResourceArn": endpoint})
    assert not world.twin.owns("CreateModel", {})


def test_at_the_end_of_the_twin_no_process_is_left_and_no_status_changes(tmp_path):
    with open_world(tmp_path, manual_clock()) as world:
        world.train("running", ["sh", "-c", "sleep 60 & setsid sleep 60"])
        world.create("waiting")
        pids = world.twin.training_jobs()[0]["pids"]
        world.twin.close()

        assert world.secondary("running") == "Training"
        assert world.process_events("running")[-1] == ("exit", None, 137)
        assert world.twin.training_jobs()[0]["pids"] == []
        assert len(pids) == 1
        assert world.clock.activity.in_flight() == ()
        assert list(world.work_dir.iterdir()) == []


def test_a_folder_given_relative_to_the_twin_is_absolute_for_the_container(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_world(Path(), fast_clock()) as world:
        world.create("job", SAVES_TOKEN)
        world.finished("job")

        assert world.archive("output/job/output/model.tar.gz") == {"t": b"token\n"}


def test_what_a_killed_twin_left_is_no_part_of_a_new_job(quick: World):
    old = quick.work_dir / "job" / "opt" / "ml" / "model"
    old.mkdir(parents=True)
    (old / "stale").write_text("", encoding="utf-8")
    quick.create("job")
    quick.finished("job")

    assert quick.store.objects[BUCKET] == {}


def test_a_fault_of_the_twin_itself_fails_only_the_job_it_is_about(quick: World, caplog):
    quick.store.keys = None  # type: ignore[method-assign, assignment]
    quick.create("bad", CheckpointConfig={"S3Uri": f"s3://{BUCKET}/c"})
    quick.create("good")

    assert quick.finished("bad")["FailureReason"].startswith("InternalServerError")
    assert quick.finished("good")["TrainingJobStatus"] == "Completed"


def test_events_that_nobody_takes_stop_no_job(quick: World, caplog):
    quick.events.publish = None  # type: ignore[method-assign, assignment]
    quick.create("job")

    assert quick.finished("job")["TrainingJobStatus"] == "Completed"


def test_at_the_default_speed_a_job_that_does_nothing_is_completed_within_seconds(tmp_path):
    with open_world(tmp_path, TwinClock(manual=False)) as world:
        begin = time.monotonic()
        world.create("job")
        world.finished("job")

        assert time.monotonic() - begin < 5


def test_many_jobs_run_side_by_side(quick: World):
    names = [f"job-{number}" for number in range(20)]
    for name in names:
        quick.create(name)
    for name in names:
        assert quick.finished(name)["TrainingJobStatus"] == "Completed"
    wait_for(lambda: quick.clock.activity.in_flight() == (), "all threads rest")
