"""Group D as far as the queue goes: what AWS refuses, loses and forgets."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState

from tests.faults.scenes import code_of, ends
from tests.integration.cloud import AnswerLost
from tests.integration.messages import proxy_event, request
from tests.integration.world import World


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("ServiceUnavailable", 503, id="D14 outage"),
        pytest.param("InternalFailure", 500, id="D14 broken"),
    ],
)
def test_D1_D14_what_is_refused_for_now_waits_out_a_back_off_and_is_not_charged(
    code: str, status: int, world: World
) -> None:
    world.submit("job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [
        (code, status)
    ] * 3  # botocore tries some codes again itself
    world.schedule()
    job = world.job("job1")
    assert (job.state, job.attempt, job.is_parked) == (JobState.PENDING, 0, True)
    assert code_of(world, "job1") == "backoff"
    world.sagemaker.refuse.clear()
    world.now += timedelta(minutes=15)
    world.reconcile()
    world.schedule()
    assert world.states("job1") == ["running"]
    world.check("job1")


def test_D1_a_throttled_start_goes_back_to_its_turn_and_is_not_charged(world: World) -> None:
    """The account calls too often: that is no fault of the job, which waits in its turn, not for itself."""
    world.submit("job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("ThrottlingException", 400)] * 3
    world.wake()
    job = world.job("job1")
    assert (job.state, job.attempt, job.is_parked) == (JobState.PENDING, 0, False)
    assert job.starts.refused == 0
    world.schedule()  # the pass has asked for the next one
    assert world.states("job1") == ["running"]
    world.check("job1")


def test_D3_no_capacity_after_the_start_is_a_new_attempt_later(world: World) -> None:
    world.submit("job1")
    world.schedule()
    ends(world, "job1", "Failed", reason="CapacityError: Unable to provision requested ML compute capacity.")
    job = world.job("job1")
    assert (job.state, job.attempt, job.preemptions) == (JobState.PENDING, 1, 0)
    world.now += timedelta(minutes=15)
    world.reconcile()
    world.schedule()
    assert world.states("job1") == ["running"]


def test_D4_a_foreign_training_job_under_the_name_is_not_adopted(world: World) -> None:
    world.sagemaker._CreateTrainingJob(request("job1"))
    world.submit("job1")
    world.submit("job2")
    world.schedule()
    assert world.states("job1", "job2") == ["failed", "running"]
    assert code_of(world, "job1") == "name-taken"


def test_D4_a_name_that_was_just_deleted_is_created_once_more(world: World) -> None:
    world.submit("job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("ResourceInUse", 400)]
    world.schedule()
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ValidationException"])
def test_D5_D6_what_aws_refuses_of_one_job_and_not_of_the_next_fails_at_the_second_refusal(
    code: str, world: World
) -> None:
    """The next job starts in the same pass; what AWS takes from it says that the refusal is about job1."""
    world.submit("job1", priority=1)
    world.submit("job2")
    world.sagemaker.refuse["CreateTrainingJob"] = [(code, 400)]
    world.schedule()
    assert world.states("job1", "job2") == ["pending", "running"]
    waiting = world.api("GET", "/jobs/job1")["waiting"]
    assert waiting["code"] == "refused"
    assert code in waiting["message"]
    assert world.job("job1").attempt == 0
    world.sagemaker.refuse["CreateTrainingJob"] = [(code, 400)]
    world.a_minute_passes()
    view = world.api("GET", "/jobs/job1")
    assert (view["state"], view["reason"]["code"]) == ("failed", "failed-to-start")
    assert code in view["reason"]["message"]
    world.check("job1", "job2")


def test_an_error_nobody_knows_is_counted_and_then_final(world: World) -> None:
    world.submit("job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("OddError", 400)] * 3
    for _ in range(3):
        world.now += timedelta(minutes=15)
        world.reconcile()
        world.schedule()
    assert world.states("job1") == ["failed"]


def test_D7_a_create_that_never_answers_is_not_sent_under_a_second_name(world: World) -> None:
    world.submit("job1")
    world.wire.strike("CreateTrainingJob", 3, AnswerLost())
    world.schedule()
    assert world.sagemaker.creates == ["job1"]
    assert world.states("job1") == ["running"]


def test_D7_a_create_nobody_can_look_up_keeps_its_slot_until_somebody_can(world: World) -> None:
    """The training job may run: giving its instances to another would be one too many."""
    world.submit("job1")
    world.wire.strike("CreateTrainingJob", 3, AnswerLost())
    world.sagemaker.refuse["DescribeTrainingJob"] = [("ThrottlingException", 400)] * 9
    world.wake()
    assert world.states("job1") == ["starting"]
    world.check("job1")
    world.sagemaker.refuse.clear()
    world.a_minute_passes()
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]


@pytest.mark.parametrize("code", ["ThrottlingException", "ServiceUnavailable"])
def test_D1_a_stop_that_was_refused_is_sent_again(code: str, busy: World) -> None:
    busy.sagemaker.refuse["StopTrainingJob"] = [(code, 503)] * 3
    busy.submit("job4", priority=3)
    busy.schedule()
    assert busy.states("job1") == ["preempting"]
    busy.sagemaker.refuse.clear()
    busy.reconcile()
    busy.schedule()
    assert busy.sagemaker.jobs["job1"].stops == 1


def test_D9_a_stop_of_a_finished_job_is_a_success(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    busy.submit("job4", priority=3)
    busy.schedule()
    busy.tell("job1")
    busy.schedule()
    assert busy.states("job1", "job4") == ["completed", "running"]
    busy.check("job1", "job2", "job4")


def test_a_stop_that_sagemaker_forgot_is_sent_again(preempting: World) -> None:
    job = preempting.sagemaker.jobs["job1"]
    job.status, job.secondary = "InProgress", "Training"
    preempting.reconcile()
    preempting.schedule()
    assert job.stops == 2


def test_D10_a_job_deleted_outside_fails_and_frees_its_slot(busy: World) -> None:
    del busy.sagemaker.jobs["job1"]
    busy.reconcile()
    assert busy.states("job1") == ["running"], "not found once proves nothing"
    busy.now += timedelta(minutes=5)
    busy.reconcile()
    assert busy.states("job1") == ["failed"]
    assert code_of(busy, "job1") == "deleted-outside"
    busy.check("job1", "job2")


def test_an_unreadable_ring_goes_to_the_dead_letters_alone(busy: World) -> None:
    records = [{"messageId": "1", "body": "?"}, {"messageId": "2", "body": '{"pool": "main"}'}]
    answer = busy.call("schedule", {"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}


def test_G4_an_event_without_a_caller_is_refused_before_anything_is_read(world: World) -> None:
    answer: dict[str, Any] = {}
    calls = world.calls_of(
        lambda: answer.update(world.call("api", proxy_event("POST", "/add-job", request("job1"), user=None)))
    )
    assert answer["statusCode"] == 500
    assert calls == []
