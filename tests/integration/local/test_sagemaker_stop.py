"""Everything that ends a job before its time: stop, limits, failures on demand, lost spot instances."""

import threading

import pytest

from local.sagemaker.mailbox import Exited
from local.wire import AwsError
from tests.integration.local.sagemaker_world import (
    BUCKET,
    UNTIL_TRAINING_SECONDS,
    World,
    manual_clock,
    open_world,
    python,
)

SLEEPS = ["sleep", "60"]
ENDS_SOON = ["sleep", "0.5"]
"""But not within the moment that a manual clock waits for a process."""
GRACE_SECONDS = 120
WAIT_SECONDS = 40
"""More than any wait of a status."""

SAVES_ON_SIGTERM = [
    "sh",
    "-c",
    "trap 'echo saved > $SM_MODEL_DIR/t; exit 0' TERM; echo ready; while :; do sleep 0.02; done",
]
IGNORES_SIGTERM = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done"]
SPOT = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 1000, "MaxWaitTimeInSeconds": 3000},
    "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/ckpt"},
}
COUNTS_STARTS = python(
    "import os, pathlib, time; path = pathlib.Path(os.environ['SM_CHECKPOINT_DIR'], 'starts'); "
    "before = path.read_text() if path.exists() else ''; path.write_text(before + 'x'); "
    "print('start', len(before) + 1, flush=True); time.sleep(60)"
)


@pytest.fixture
def world(tmp_path):
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def transitions(world: World, name: str) -> list[str]:
    return [one["Status"] for one in world.describe(name)["SecondaryStatusTransitions"]]


def end(world: World, name: str = "job") -> tuple[str, str]:
    shown = world.finished(name)
    return shown["TrainingJobStatus"], shown["SecondaryStatus"]


def test_a_job_is_stopping_when_the_call_returns(world: World):
    world.train("job", SLEEPS)
    world.stop("job")

    shown = world.describe("job")
    assert (shown["TrainingJobStatus"], shown["SecondaryStatus"]) == ("Stopping", "Stopping")


def test_a_command_in_exec_form_hears_sigterm_and_what_it_saves_then_is_kept(world: World):
    world.train("job", SAVES_ON_SIGTERM)
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.wait_until("job", "Uploading")
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Stopped", "Stopped")
    assert world.archive("output/job/output/model.tar.gz") == {"t": b"saved\n"}
    assert world.process_events("job") == [
        ("start", None, None),
        ("signal", "SIGTERM", None),
        ("exit", None, 0),
    ]
    assert transitions(world, "job")[3:] == ["Training", "Stopping", "Uploading", "Stopped"]
    assert world.events.statuses("job")[4:] == [
        ("Stopping", "Stopping"),
        ("Stopping", "Uploading"),
        ("Stopped", "Stopped"),
    ]


def test_a_command_that_does_not_end_is_killed_after_120_seconds(world: World):
    world.train("job", IGNORES_SIGTERM)
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.advance(GRACE_SECONDS - 1)
    assert world.secondary("job") == "Stopping"

    world.advance(1)
    assert world.secondary("job") == "Uploading"
    world.advance(WAIT_SECONDS)
    assert end(world) == ("Stopped", "Stopped")
    assert world.process_events("job")[1:] == [
        ("signal", "SIGTERM", None),
        ("signal", "SIGKILL", None),
        ("exit", None, 137),
    ]


def test_a_slow_stop_says_stopping_for_as_long_as_it_is_told(world: World):
    world.train("job", SLEEPS)
    world.twin.slow_stop("job", 600)
    world.stop("job")
    world.advance(599)
    assert world.secondary("job") == "Stopping"
    world.advance(1 + WAIT_SECONDS)
    assert end(world) == ("Stopped", "Stopped")


def test_a_slow_stop_of_a_job_without_instances_is_slow_too_and_zero_seconds_are_as_usual(world: World):
    for name, seconds in {"slow": 300, "usual": 0}.items():
        world.create(name, SLEEPS)
        world.twin.slow_stop(name, 900)
        world.twin.slow_stop(name, seconds)
        world.stop(name)
    world.advance(WAIT_SECONDS)
    assert (world.secondary("slow"), end(world, "usual")) == ("Stopping", ("Stopped", "Stopped"))
    world.advance(300)
    assert end(world, "slow") == ("Stopped", "Stopped")


def test_a_job_that_has_ended_is_not_stopped_slowly(world: World):
    world.train_to_end("job", ENDS_SOON)
    with pytest.raises(AwsError, match="has ended"):
        world.twin.slow_stop("job", 60)


@pytest.mark.parametrize("after_seconds", [0, 20, 60])
def test_a_job_stopped_before_training_never_starts_a_process(world: World, after_seconds):
    world.create("job", SLEEPS)
    world.advance(after_seconds)
    assert world.secondary("job") in {"Starting", "Pending", "Downloading"}
    world.stop("job")
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Stopped", "Stopped")
    assert transitions(world, "job")[-2:] == ["Stopping", "Stopped"]
    world.advance(1000)
    assert world.journal_lines() == []


def test_stopping_twice_is_no_error_and_gives_one_event(world: World):
    world.train("job", IGNORES_SIGTERM)
    world.stop("job")
    world.stop("job")

    assert world.events.statuses("job").count(("Stopping", "Stopping")) == 1


def test_stopping_a_job_that_uploads_what_a_stop_left_changes_nothing(world: World):
    world.train("job", SAVES_ON_SIGTERM)
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.wait_until("job", "Uploading")
    world.stop("job")

    assert transitions(world, "job")[-2:] == ["Stopping", "Uploading"]


@pytest.mark.parametrize("status", ["Completed", "Stopped", "Failed"])
def test_a_job_that_has_ended_cannot_be_stopped(world: World, status):
    world.train("job", ENDS_SOON if status == "Completed" else SLEEPS)
    if status == "Stopped":
        world.stop("job")
    if status == "Failed":
        world.twin.fail("job", "why")
    else:
        world.wait_until("job", "Uploading")
        world.advance(WAIT_SECONDS)
    world.finished("job")

    with pytest.raises(AwsError) as caught:
        world.stop("job")

    assert caught.value.code == "ValidationException"
    assert caught.value.message == (
        f"The request was rejected because the training job is in status {status}."
    )


def test_a_job_stopped_while_it_uploads_completes(world: World):
    world.train("job", ENDS_SOON)
    world.wait_until("job", "Uploading")
    world.stop("job")
    assert world.describe("job")["TrainingJobStatus"] == "Stopping"
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Completed", "Completed")


def test_a_job_that_runs_too_long_is_stopped_with_the_reason_as_its_secondary_status(world: World):
    world.train("job", SAVES_ON_SIGTERM, StoppingCondition={"MaxRuntimeInSeconds": 500})
    world.wait_for_line("job", "ready")
    world.advance(500 - UNTIL_TRAINING_SECONDS)
    assert world.secondary("job") == "Training"
    world.advance(UNTIL_TRAINING_SECONDS)

    assert end(world) == ("Stopped", "MaxRuntimeExceeded")
    assert world.archive("output/job/output/model.tar.gz") == {"t": b"saved\n"}


def test_a_user_who_stops_a_job_that_runs_too_long_changes_nothing(world: World):
    world.train("job", IGNORES_SIGTERM, StoppingCondition={"MaxRuntimeInSeconds": 500})
    world.wait_for_line("job", "ready")
    world.advance(500)
    world.wait_until("job", "Stopping")
    world.stop("job")
    world.advance(GRACE_SECONDS)
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Stopped", "MaxRuntimeExceeded")


def test_a_spot_job_that_waits_too_long_is_stopped_whatever_it_does(world: World):
    stopping = {"StoppingCondition": {"MaxRuntimeInSeconds": 5, "MaxWaitTimeInSeconds": 5}}
    world.create("job", SLEEPS, **(SPOT | stopping))
    world.advance(30)

    assert end(world) == ("Stopped", "MaxWaitTimeExceeded")
    assert world.journal_lines() == []


def test_a_lost_spot_instance_restarts_the_job_with_its_checkpoints(world: World):
    world.train("job", COUNTS_STARTS, **SPOT)
    world.wait_for_line("job", "start 1")
    world.wait_for_object("ckpt/starts", b"x")
    world.twin.spot("job", "interrupt")
    world.wait_until("job", "Interrupted")
    world.advance(UNTIL_TRAINING_SECONDS)
    world.wait_for_line("job", "start 2")

    assert transitions(world, "job")[2:] == [
        *("Downloading", "Training", "Interrupted", "Restarting", "Downloading", "Training")
    ]
    kinds = [event for event, _, _ in world.process_events("job")]
    assert kinds == ["start", "signal", "exit", "start"]
    assert len(world.twin.training_jobs()[0]["pids"]) == 1
    assert all(kind == "write" for kind, _ in world.store.history)
    mirrors = [thread for thread in threading.enumerate() if thread.name == "checkpoint-mirror"]
    assert len(mirrors) == 1, "one that still looks at the lost folder would delete in S3 what is not there"


def test_run_time_is_summed_over_interruptions(world: World):
    limits = {"StoppingCondition": {"MaxRuntimeInSeconds": 500, "MaxWaitTimeInSeconds": 90_000}}
    world.train("job", SLEEPS, **(SPOT | limits))
    world.advance(400)
    world.twin.spot("job", "interrupt")
    world.wait_until("job", "Interrupted")
    world.advance(UNTIL_TRAINING_SECONDS)
    world.wait_until("job", "Training")
    world.advance(100 + WAIT_SECONDS)

    assert end(world) == ("Stopped", "MaxRuntimeExceeded")


def test_a_job_can_be_stopped_while_it_has_no_instances(world: World):
    world.train("job", SLEEPS, **SPOT)
    world.twin.spot("job", "interrupt")
    world.wait_until("job", "Interrupted")
    world.stop("job")
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Stopped", "Stopped")


def test_only_a_spot_job_with_instances_can_lose_them(world: World):
    world.train("on-demand", SLEEPS)
    world.create("waiting", SLEEPS, **SPOT)

    for name in ("on-demand", "waiting", "none"):
        with pytest.raises(AwsError):
            world.twin.spot(name, "interrupt")
    with pytest.raises(AwsError, match="action is one of interrupt"):
        world.twin.spot("waiting", "explode")


@pytest.mark.parametrize("phase", ["Starting", "Training", "Stopping", "Uploading"])
def test_a_job_fails_on_demand_in_every_phase(world: World, phase):
    reason = "CapacityError: Unable to provision requested ML compute capacity."
    if phase == "Starting":
        world.create("job", SLEEPS)
    else:
        world.train("job", ENDS_SOON if phase == "Uploading" else IGNORES_SIGTERM)
    if phase == "Stopping":
        world.stop("job")
    world.wait_until("job", phase)
    world.twin.fail("job", reason)

    assert end(world) == ("Failed", "Failed")
    assert world.describe("job")["FailureReason"] == reason
    assert world.twin.training_jobs()[0]["failure_reason"] == reason
    assert world.twin.training_jobs()[0]["pids"] == []
    with pytest.raises(AwsError):
        world.twin.fail("job", "again")


def test_a_failure_without_a_reason_tells_the_exit_code(world: World):
    world.create("job", SLEEPS)
    world.twin.fail("job", exit_code=9)
    world.finished("job")

    assert world.describe("job")["FailureReason"] == "AlgorithmError: , exit code: 9"


def test_a_failed_job_keeps_its_last_checkpoints_and_no_model(world: World):
    config = {"S3Uri": f"s3://{BUCKET}/ckpt"}
    command = ["sh", "-c", "echo 1 > $SM_CHECKPOINT_DIR/a; echo 2 > $SM_MODEL_DIR/b; exit 1"]
    world.train_to_end("job", command, CheckpointConfig=config)

    assert world.store.objects[BUCKET] == {"ckpt/a": b"1\n"}


def test_a_bucket_that_is_gone_at_the_end_fails_the_job(world: World):
    world.train("job", ["sh", "-c", "echo 2 > $SM_MODEL_DIR/b; sleep 0.3"])
    del world.store.objects[BUCKET]

    assert end(world) == ("Failed", "Failed")
    assert world.describe("job")["FailureReason"].startswith("ClientError: Artifact upload failed")


def test_the_end_of_a_container_that_was_taken_away_is_not_the_end_of_the_stop(world: World):
    """The exit of the killed process may be heard only after the stop."""
    world.train("job", SLEEPS, **SPOT)
    run = world.twin._runs._runs["job"]
    world.twin.spot("job", "interrupt")
    world.wait_until("job", "Interrupted")
    world.stop("job")
    world.wait_until("job", "Stopping")
    run.post(Exited(code=-9))
    world.advance(WAIT_SECONDS)

    assert end(world) == ("Stopped", "Stopped")
