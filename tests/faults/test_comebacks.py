"""Attempts after attempts: retries of failures, spot instances that are taken away, preemptions in turn."""

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenarios import SPOT
from tests.faults.scenes import code_of, ends, trains
from tests.faults.situations import ON_SPOT, spot_is_no_good
from tests.integration.world import World

SERVICE = "InternalServerError: We encountered an internal error. Please try again."
LONG_NAME = "a" * 63
HOUR = timedelta(hours=1)


def policy(**sections: Any) -> dict[str, Any]:
    return {"pools": [{"name": "main", "capacity": {A: 1}}], **sections}


def runs(world: World, name: str) -> str:
    """The name of the training job of its live attempt, which trains."""
    world.now += minutes(31)  # longer than any back-off
    world.reconcile()
    world.schedule()
    live = world.job(name).live
    assert live is not None, world.job(name)
    trains(world, live.training_job_name)
    return live.training_job_name


def test_H7_many_attempts_have_short_names_of_their_own_and_the_budget_ends_them(new_world: NewWorld) -> None:
    world = new_world(policy(recovery={"max_retries": 9}))
    world.submit(LONG_NAME)
    world.schedule()
    names = []
    for _ in range(10):
        names.append(runs(world, LONG_NAME))
        ends(world, names[-1], "Failed", reason=SERVICE)
    assert world.states(LONG_NAME) == ["failed"]
    assert world.job(LONG_NAME).attempt == 9
    assert len(set(names)) == 10
    assert max(len(name) for name in names) == 63
    assert names[0] == LONG_NAME
    reason = world.job(LONG_NAME).reason
    assert reason is not None
    assert "its retries are used up, 9 of 9" in reason.message
    world.check(LONG_NAME)


def test_H7_a_job_that_is_stopped_again_and_again_uses_its_run_time_up(new_world: NewWorld) -> None:
    """What survived is taken off; at the end an attempt gets a minute, and its end is the job's."""
    world = new_world(policy())
    world.submit("job1")  # for an hour
    world.schedule()
    for number in range(8):
        name = runs(world, "job1")
        world.now += minutes(20)
        uri = "s3://bucket/checkpoints/job1"
        world.checkpoints[uri] = world.now
        world.submit(f"urgent{number}", priority=5)
        for _ in range(5):  # each job's checkpoints are looked at once in five minutes
            world.now += minutes(1)
            world.reconcile()
            world.schedule()
        if world.job("job1").preemptions >= 3:
            break
        ends(world, name, "Stopped")
        ends(world, f"urgent{number}")
    job = world.job("job1")
    assert (job.preemptions, job.checkpointed > timedelta()) == (3, True)
    live = job.live
    assert live is not None
    assert live.max_runtime == timedelta(minutes=30), "what is left of the hour is less"


def test_H8_preemptors_that_are_preempted_in_turn_come_to_an_end(new_world: NewWorld) -> None:
    world = new_world(policy())
    names = [f"job{priority}" for priority in range(1, 6)]
    for priority, name in enumerate(names, start=1):
        world.submit(name, priority=priority)
        world.schedule()
        for running, job in world.sagemaker.live().items():
            if job.status == "Stopping":
                ends(world, running, "Stopped")
        trains(world, *world.sagemaker.live())
    for _ in range(3):
        world.now += minutes(1)
        world.reconcile()
        world.schedule()
    assert world.states(*names) == ["preempted"] * 4 + ["running"]
    assert [world.job(name).preemptions for name in names] == [1, 1, 1, 1, 0]
    assert len(world.sagemaker.creates) == 5


def test_H8_a_minimum_run_time_protects_whom_a_preemptor_would_stop_at_once(new_world: NewWorld) -> None:
    protects = {"name": "main", "capacity": {A: 1}, "preemption": {"min_runtime": "15m"}}
    world = new_world({"pools": [protects]})
    world.submit("job1", priority=1)
    world.schedule()
    trains(world, "job1")
    world.submit("job2", priority=2)
    world.schedule()
    assert world.states("job1", "job2") == ["running", "pending"]
    world.now += minutes(15)
    world.reconcile()
    world.schedule()
    assert world.states("job1", "job2") == ["preempting", "pending"]


# ---- failures


def test_B1_a_failure_delivered_five_times_is_one_retry(new_world: NewWorld) -> None:
    world = new_world(policy())
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    world.sagemaker.end("job1", "Failed", reason=SERVICE)
    for _ in range(5):
        world.tell("job1")
    job = world.job("job1")
    assert (job.state, job.attempt, job.comebacks.retries) == ("pending", 1, 1)
    assert code_of(world, "job1") == "backoff"
    world.check("job1")


def test_B5_a_failure_nobody_heard_of_is_found_within_two_periods(new_world: NewWorld) -> None:
    world = new_world(policy())
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    world.sagemaker.end("job1", "Failed", reason=SERVICE)
    world.now += timedelta(seconds=30)
    world.reconcile()
    assert world.states("job1") == ["running"], "an event may be on its way, to who may read its log"
    world.now += timedelta(seconds=60)
    world.reconcile()
    assert world.states("job1") == ["pending"]


def test_only_who_hears_events_reads_logs_and_policy_and_only_for_failures(new_world: NewWorld) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 3}}]})
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    world.schedule()
    trains(world, "job1", "job2", "job3")
    for name in ("job1", "job3"):
        world.sagemaker.end(name, "Failed", reason="AlgorithmError: x, exit code: 1")
    world.sagemaker.end("job2", "Completed")
    assert "DescribeLogStreams" in world.calls_of(lambda: world.tell("job1"))
    assert "DescribeLogStreams" not in world.calls_of(lambda: world.tell("job2"))
    world.now += minutes(5)
    assert "DescribeLogStreams" not in world.calls_of(world.reconcile)
    assert world.states("job1", "job2", "job3") == ["failed", "completed", "failed"]


def test_a_bug_is_not_retried_and_its_owner_is_told_what_to_do(new_world: NewWorld) -> None:
    world = new_world(policy())
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    ends(
        world, "job1", "Failed", reason="AlgorithmError: ExecuteUserScriptError:\nKeyError: 'x', exit code: 1"
    )
    view = world.api("GET", "/jobs/job1")
    assert (view["state"], view["reason"]["code"]) == ("failed", "user-code")
    (attempt,) = view["attempts"]
    assert (attempt["diagnosis"]["class"], attempt["diagnosis"]["exit_code"]) == ("user-code", 1)
    assert attempt["diagnosis"]["advice"] in view["reason"]["message"]
    assert "Not retried: failures of class user-code are not retried" in view["reason"]["message"]


def test_out_of_gpu_memory_comes_back_with_half_the_batch(new_world: NewWorld) -> None:
    on_oom = {"batch": ["batch_size"], "accumulation": ["steps"]}
    world = new_world(policy(recovery={"on_oom": on_oom}))
    world.submit(
        "job1",
        HyperParameters={"batch_size": '"8"', "steps": "1", "lr": "0.1"},
        Tags=[{"Key": "trainmaster:on_oom", "Value": "halve_batch"}],
    )
    world.schedule()
    oom = (
        "AlgorithmError: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB, exit code: 1"
    )
    sizes = []
    for _ in range(4):
        name = runs(world, "job1")
        asked = world.sagemaker.jobs[name].request["HyperParameters"]
        sizes.append((asked["batch_size"], asked["steps"], asked["lr"]))
        ends(world, name, "Failed", reason=oom)
    assert sizes == [
        ('"8"', "1", "0.1"),
        ('"4"', "2", "0.1"),
        ('"2"', "4", "0.1"),
        ('"1"', "8", "0.1"),
    ]
    assert world.states("job1") == ["failed"]
    assert world.job("job1").comebacks.halvings == 3


# ---- spot


def test_interrupted_too_often_a_spot_job_comes_back_on_demand(new_world: NewWorld) -> None:
    world = new_world(SPOT)
    spot_is_no_good(world)
    world.tell("job1")
    assert world.states("job1") == ["preempting"]
    world.schedule()
    assert world.sagemaker.jobs["job1"].status == "Stopping"
    ends(world, "job1", "Stopped")
    job = world.job("job1")
    assert (job.state, job.spot.left, job.attempt, job.preemptions) == ("running", True, 1, 0)
    assert job.live is not None
    request = world.sagemaker.jobs[job.live.training_job_name].request
    assert request["EnableManagedSpotTraining"] is False
    assert "MaxWaitTimeInSeconds" not in request["StoppingCondition"]
    assert world.api("GET", "/jobs/job1")["capacity_type"] == "on-demand"
    world.check("job1")


def test_B12_three_interruptions_are_borne(new_world: NewWorld) -> None:
    world = new_world(SPOT)
    world.submit("job1", **ON_SPOT)
    world.schedule()
    for _ in range(3):
        trains(world, "job1")
        world.sagemaker.interrupt("job1")
        world.tell("job1")
    assert world.states("job1") == ["running"]
    live = world.job("job1").live
    assert live is not None
    assert live.spot.interruptions == 3
    world.check("job1")


def test_a_spot_job_that_waited_too_long_is_pending_on_demand_at_once(new_world: NewWorld) -> None:
    world = new_world(SPOT)
    world.submit("job1", **ON_SPOT)
    world.schedule()
    ends(world, "job1", "Stopped", secondary="MaxWaitTimeExceeded")
    assert world.states("job1") == ["running"], "it started within the same pass"
    assert world.job("job1").spot.left


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param({"spot": {"fallback": "none"}}, "no-fallback", id="the policy moves nobody"),
        pytest.param(
            {"pools": [{"name": "main", "capacity": {A: 0}, "spot_capacity": {A: 1}}]},
            "no-on-demand-capacity",
            id="the pool has none",
        ),
    ],
)
def test_what_has_to_stay_on_spot_stays_is_told_once_and_ends_with_max_wait(
    changed: dict[str, Any], code: str, new_world: NewWorld
) -> None:
    world = new_world(SPOT | changed)
    spot_is_no_good(world)
    world.tell("job1")
    live = world.job("job1").live
    assert live is not None
    assert live.spot.stays is not None
    assert (world.states("job1"), live.spot.stays.code) == (["running"], code)
    before = world.job("job1").ver
    world.tell("job1")
    assert world.job("job1").ver == before
    ends(world, "job1", "Stopped", secondary="MaxWaitTimeExceeded")
    assert (world.states("job1"), code_of(world, "job1")) == (["stopped"], "max-wait")
