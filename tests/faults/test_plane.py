"""Groups B, C and D as far as the queue goes, and the four-job example, under the real handlers."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.jobs import JobState

from tests.builders import A, minutes
from tests.integration.sagemaker_stub import error
from tests.integration.world import Crash, World, proxy_event, request


def trains(world: World, *names: str) -> None:
    for name in names:
        world.sagemaker.train(name)
        world.tell(name)


def ends(world: World, name: str, status: str = "Completed", **fields: Any) -> None:
    """A training job ends, and its event arrives."""
    world.sagemaker.end(name, status, **fields)
    world.tell(name)
    world.schedule()


def code_of(world: World, name: str) -> str | None:
    view: dict[str, Any] = world.api("GET", f"/jobs/{name}")
    reason = view["waiting"] or view["reason"]
    return None if reason is None else str(reason["code"])


@pytest.fixture
def busy(world: World) -> World:
    """job1 (p=1) and job2 (p=2) train on both instances."""
    world.submit("job1", priority=1)
    world.submit("job2", priority=2)
    world.schedule()
    trains(world, "job1", "job2")
    return world


@pytest.fixture
def preempting(busy: World) -> World:
    """job4 (p=3) came and waits for job1 to stop."""
    busy.submit("job4", priority=3)
    busy.schedule()
    assert busy.states("job1", "job4") == ["preempting", "pending"]
    return busy


def test_the_four_job_example(busy: World) -> None:
    busy.submit("job3", priority=1)
    busy.schedule()
    assert busy.states("job3") == ["pending"]
    busy.submit("job4", priority=3)
    busy.schedule()
    ends(busy, "job1", "Stopped")
    assert busy.states("job1", "job2", "job3", "job4") == ["preempted", "running", "pending", "running"]
    listed = [job["name"] for job in busy.api("GET", "/jobs")["jobs"]]
    assert listed == ["job4", "job2", "job1", "job3"]
    ends(busy, "job2")
    assert busy.states("job1", "job3") == ["running", "pending"]
    ends(busy, "job4")
    assert busy.states("job3") == ["running"]
    resumed = busy.job("job1").live
    assert resumed is not None
    for name in (resumed.training_job_name, "job3"):
        ends(busy, name)
    assert busy.api("GET", "/jobs")["jobs"] == []
    busy.check("job1", "job2", "job3", "job4")


def test_a_resumed_attempt_asks_for_what_was_submitted_under_a_name_of_its_own(preempting: World) -> None:
    ends(preempting, "job1", "Stopped")
    ends(preempting, "job2")
    live = preempting.job("job1").live
    assert live is not None
    assert live.training_job_name.startswith("job1-r1-")
    first, second = (preempting.sagemaker.jobs[name].request for name in ("job1", live.training_job_name))
    assert first["CheckpointConfig"] == second["CheckpointConfig"]
    tags = [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in (first, second)]
    assert [one["trainmaster:attempt"] for one in tags] == ["0", "1"]
    assert tags[0]["trainmaster:job"] == tags[1]["trainmaster:job"]
    view = preempting.api("GET", f"/jobs/{live.training_job_name}")
    assert (view["name"], view["attempt"]) == ("job1", 1), "any attempt's name finds the job"


# ---- B: delivery


def test_B1_an_end_delivered_five_times_is_one_end(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    for _ in range(5):
        busy.tell("job1")
    lines = busy.api("GET", "/jobs/job1")["history"]
    assert [line["to"] for line in lines].count("completed") == 1
    busy.check("job1", "job2")


def test_B2_completed_before_in_progress_stays_completed(busy: World) -> None:
    ends(busy, "job1")
    job = busy.sagemaker.jobs["job1"]
    job.status, job.secondary = "InProgress", "Training"
    busy.tell("job1")
    assert busy.states("job1") == ["completed"]


def test_B3_news_of_an_earlier_attempt_is_ignored(preempting: World) -> None:
    ends(preempting, "job1", "Stopped")
    ends(preempting, "job2")
    preempting.tell("job1")
    assert preempting.states("job1") == ["running"]
    assert preempting.job("job1").attempt == 1


def test_B4_an_event_a_day_late_does_what_is_still_due_and_no_more(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    busy.now += timedelta(hours=24)
    busy.tell("job1")
    busy.tell("job1")
    assert busy.states("job1") == ["completed"]


def test_B5_a_lost_event_is_made_good_within_two_periods(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    for _ in range(2):
        busy.now += minutes(1)
        busy.reconcile()
    assert busy.states("job1") == ["completed"]


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param({}, id="no tags: nobody's queue"),
        pytest.param({"trainmaster:stack": "trainmaster-b"}, id="another stack, whose name begins like ours"),
    ],
)
def test_B6_B13_news_of_jobs_that_are_not_ours_changes_nothing(tags: dict[str, str], busy: World) -> None:
    calls = busy.count(
        lambda: busy.call("on_training_job_event", {"detail": {"TrainingJobName": "x", "Tags": tags}})
    )
    assert calls == 0


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({}, id="no detail"),
        pytest.param({"detail": None}, id="null detail"),
        pytest.param({"detail": {"Tags": {"trainmaster:stack": "trainmaster"}}}, id="no name"),
        pytest.param(
            {"detail": {"TrainingJobName": "gone", "Tags": {"trainmaster:stack": "trainmaster"}}},
            id="unknown name",
        ),
    ],
)
def test_B7_an_event_that_says_too_little_is_no_crash(event: dict[str, Any], busy: World) -> None:
    busy.call("on_training_job_event", event)


@pytest.mark.parametrize("secondary", ["Restarting", "Interrupted", "Updating", "SomethingOfNextYear"])
def test_B7_B12_an_unknown_or_interrupted_status_keeps_the_slot(secondary: str, busy: World) -> None:
    busy.sagemaker.jobs["job1"].secondary = secondary
    busy.tell("job1")
    assert busy.states("job1") == ["running"]
    busy.check("job1", "job2")


def test_B8_a_failure_reason_that_wants_to_write_on_the_terminal_is_tamed(busy: World) -> None:
    reason = "AlgorithmError: \x1b[2J\u202e oops \N{COLLISION SYMBOL}" + "x" * 5000
    ends(busy, "job1", "Failed", reason=reason)
    message = busy.api("GET", "/jobs/job1")["reason"]["message"]
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert "\N{COLLISION SYMBOL}" in message
    assert len(message) == 1024


def test_B10_C6_a_job_that_completes_in_its_grace_time_does_not_come_back(preempting: World) -> None:
    ends(preempting, "job1", "Completed")
    assert preempting.states("job1", "job4") == ["completed", "running"]


def test_B11_failed_while_preempting_is_failed(preempting: World) -> None:
    ends(preempting, "job1", "Failed", reason="AlgorithmError: ValueError")
    assert preempting.states("job1", "job4") == ["failed", "running"]


# ---- C: concurrency


def test_C1_two_passes_at_once_start_each_job_once_and_never_too_many(world: World) -> None:
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    create = world.sagemaker._CreateTrainingJob

    def another_pass_meanwhile(body: dict[str, Any]) -> Any:
        world.ring()
        return create(body)

    world.sagemaker.intercept["CreateTrainingJob"] = another_pass_meanwhile
    world.schedule()
    assert world.states("job1", "job2", "job3") == ["running", "running", "pending"]
    assert sorted(world.sagemaker.creates) == ["job1", "job2"]
    world.check("job1", "job2", "job3")


def test_C2_news_of_a_claim_whose_create_is_still_under_way_takes_nothing_back(world: World) -> None:
    world.submit("job1")
    assert world.dies(world.ring, Crash("CreateTrainingJob", "before"))
    tags = {"trainmaster:stack": "trainmaster"}
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "job1", "Tags": tags}})
    assert world.states("job1") == ["starting"]


def test_C2_the_reconciler_leaves_a_claim_alone_while_its_worker_may_live(world: World) -> None:
    world.submit("job1")
    assert world.dies(world.ring, Crash("CreateTrainingJob", "before"))
    for _ in range(4):
        world.now += minutes(1)
        world.reconcile()
    assert world.states("job1") == ["starting"]


def test_C3_a_cancel_between_claim_and_create_stops_what_was_created(world: World) -> None:
    world.submit("job1")
    create = world.sagemaker._CreateTrainingJob

    def cancelled_meanwhile(body: dict[str, Any]) -> Any:
        assert world.api("DELETE", "/jobs/job1")["status"] == 202
        return create(body)

    world.sagemaker.intercept["CreateTrainingJob"] = cancelled_meanwhile
    world.schedule()
    assert world.sagemaker.jobs["job1"].status == "Stopping"
    ends(world, "job1", "Stopped")
    assert world.states("job1") == ["stopped"]
    world.check("job1")


def test_C3_a_cancel_of_a_claim_that_is_refused_ends_as_stopped(world: World) -> None:
    world.submit("job1")

    def cancelled_meanwhile(_: dict[str, Any]) -> Any:
        assert world.api("DELETE", "/jobs/job1")["status"] == 202
        return error("ThrottlingException", "slow down")

    world.sagemaker.intercept["CreateTrainingJob"] = cancelled_meanwhile
    world.schedule()
    assert world.states("job1") == ["stopped"]
    world.check("job1")


def test_C4_a_cancel_after_the_end_is_a_conflict(busy: World) -> None:
    ends(busy, "job1")
    answer = busy.api("DELETE", "/jobs/job1")
    assert answer["status"] == 409
    assert "completed" in answer["detail"]


def test_C7_a_preempted_job_that_its_user_cancels_does_not_come_back(preempting: World) -> None:
    assert preempting.api("DELETE", "/jobs/job1")["status"] == 202
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job4") == ["stopped", "running"]
    preempting.check("job1", "job2", "job4")


def test_C8_a_second_preemptor_needs_a_second_victim(preempting: World) -> None:
    preempting.submit("job5", priority=4)
    preempting.schedule()
    assert preempting.states("job1", "job2") == ["preempting", "preempting"]
    assert [preempting.sagemaker.jobs[name].stops for name in ("job1", "job2")] == [1, 1]


def test_C9_room_freed_for_a_preemptor_that_left_goes_to_the_next_in_turn(preempting: World) -> None:
    preempting.submit("job3", priority=1)
    assert preempting.api("DELETE", "/jobs/job4")["status"] == 202
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job3", "job4") == ["running", "pending", "stopped"]
    preempting.check("job1", "job2", "job3", "job4")


def test_C10_a_stop_in_the_console_is_final_and_names_its_cause(busy: World) -> None:
    ends(busy, "job1", "Stopped")
    assert busy.states("job1") == ["stopped"]
    assert code_of(busy, "job1") == "stopped-outside"


def test_C11_the_same_name_with_the_same_body_is_the_same_job_and_with_another_a_conflict(
    world: World,
) -> None:
    assert world.submit("job1")["status"] == 201
    assert world.submit("job1")["status"] == 200
    answer = world.submit("job1", priority=5)
    assert answer["status"] == 409
    assert "pending" in answer["detail"]


def test_C14_capacity_lowered_below_use_stops_nobody_and_starts_nobody(busy: World) -> None:
    busy.submit("job3")
    answer = busy.api("PUT", "/policy", {"pools": [{"name": "main", "capacity": {A: 1}}]})
    assert answer["status"] == 200
    busy.schedule()
    assert busy.states("job1", "job2", "job3") == ["running", "running", "pending"]
    ends(busy, "job1")
    assert busy.states("job2", "job3") == ["running", "pending"]
    ends(busy, "job2")
    assert busy.states("job3") == ["running"]


def test_paused_nothing_starts_and_nobody_is_preempted(busy: World) -> None:
    assert busy.api("PUT", "/policy/paused", {"paused": True})["paused"] is True
    busy.submit("job4", priority=9)
    busy.schedule()
    assert busy.states("job1", "job4") == ["running", "pending"]
    assert code_of(busy, "job4") == "paused"
    busy.api("PUT", "/policy/paused", {"paused": False})
    busy.schedule()
    assert busy.states("job1") == ["preempting"]


# ---- D: AWS's errors


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("ThrottlingException", 400, id="D1 throttled"),
        pytest.param("ResourceLimitExceeded", 400, id="D2 account limit"),
        pytest.param("ServiceUnavailable", 503, id="D14 outage"),
        pytest.param("InternalFailure", 500, id="D14 broken"),
    ],
)
def test_D1_D2_D14_what_is_refused_for_now_waits_out_a_back_off_and_is_not_charged(
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
def test_D5_D6_what_is_refused_for_good_fails_and_the_next_job_starts_in_the_same_pass(
    code: str, world: World
) -> None:
    world.submit("job1", priority=1)
    world.submit("job2")
    world.sagemaker.refuse["CreateTrainingJob"] = [(code, 400)]
    world.schedule()
    assert world.states("job1", "job2") == ["failed", "running"]
    view = world.api("GET", "/jobs/job1")
    assert view["reason"]["code"] == "failed-to-start"
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
    world.sagemaker.lose_answers = 1
    world.schedule()
    assert world.sagemaker.creates == ["job1"]
    assert world.states("job1") == ["running"]


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
    assert busy.states("job1") == ["failed"]
    assert code_of(busy, "job1") == "deleted-outside"
    busy.check("job1", "job2")


def test_an_unreadable_ring_goes_to_the_dead_letters_alone(busy: World) -> None:
    records = [{"messageId": "1", "body": "?"}, {"messageId": "2", "body": '{"pool": "main"}'}]
    answer = busy.call("schedule", {"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}


def test_G4_an_event_without_a_caller_is_refused_before_anything_is_read(world: World) -> None:
    answer: dict[str, Any] = {}
    calls = world.count(
        lambda: answer.update(world.call("api", proxy_event("POST", "/add-job", request("job1"), user=None)))
    )
    assert answer["statusCode"] == 500
    assert calls == 0
