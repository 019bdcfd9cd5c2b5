"""Group B as far as the queue goes: events late, lost, doubled, foreign."""

import json
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.errors import UnavailableError

from local.wire import Response
from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.integration.cloud import THROTTLED, json_response
from tests.integration.messages import request, state_change
from tests.integration.world import World
from tests.template.stack import of_type, resources


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


def test_B1_an_end_heard_while_it_is_being_written_is_written_once(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    busy.meanwhile["TransactWriteItems"] = lambda: busy.tell("job1")
    busy.tell("job1")
    assert busy.states("job1") == ["completed"]
    busy.check("job1", "job2")


def test_B4_a_day_old_event_of_a_victim_changes_nothing_once_it_runs_again(preempting: World) -> None:
    ends(preempting, "job1", "Stopped")
    ends(preempting, "job4")
    assert preempting.job("job1").attempt == 1
    before = preempting.job("job1")
    preempting.now += timedelta(hours=24)
    preempting.tell("job1")
    assert preempting.job("job1") == before


def test_B5_a_lost_event_of_a_preemption_is_made_good_and_the_preemptor_starts(preempting: World) -> None:
    preempting.sagemaker.end("job1", "Stopped")
    for _ in range(2):
        preempting.now += minutes(1)
        preempting.reconcile()
        preempting.schedule()
    assert preempting.states("job1", "job4") == ["preempted", "running"]
    preempting.check("job1", "job2", "job4")


def test_B6_B13_news_of_another_stack_s_jobs_are_not_even_looked_at(busy: World) -> None:
    """The other stack's name begins like ours."""
    tags = {"trainmaster:stack": "trainmaster-b"}
    event = {"detail": {"TrainingJobName": "x", "Tags": tags}}
    assert busy.calls_of(lambda: busy.call("on_training_job_event", event)) == []


def describe_as(world: World, **changed: Any) -> None:
    """DescribeTrainingJob answers with other members from now on; None: without."""
    own = world.sagemaker._DescribeTrainingJob

    def answer(body: dict[str, Any]) -> Response:
        answered = json.loads(own(body).body) | changed
        world.sagemaker.intercept["DescribeTrainingJob"] = answer
        return json_response({name: part for name, part in answered.items() if part is not None})

    world.sagemaker.intercept["DescribeTrainingJob"] = answer


ODD_TIMES = [
    {"Status": "Training", "StartTime": 1793620800.123456, "EndTime": 1793620860.987654},
    {"Status": "Interrupted", "StartTime": 1793620860.987654},
    {"Status": "Training", "StartTime": 1793620900.111111},
]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"SecondaryStatus": None, "LastModifiedTime": None}, id="without"),
        pytest.param({"SecondaryStatusTransitions": ODD_TIMES}, id="microseconds"),
        pytest.param({"SecondaryStatusTransitions": ODD_TIMES, "SecondaryStatus": None}, id="both"),
    ],
)
def test_N12_a_second_look_at_the_same_odd_answer_writes_nothing(
    changed: dict[str, Any], busy: World
) -> None:
    describe_as(busy, **changed)
    busy.tell("job1")
    before = busy.items()
    calls = busy.calls_of(lambda: busy.tell("job1"))
    assert "TransactWriteItems" not in calls
    assert busy.items() == before
    assert busy.states("job1") == ["running"]


def test_N12_an_end_without_times_is_an_end(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    describe_as(busy, SecondaryStatus=None, LastModifiedTime=None, TrainingEndTime=None)
    busy.tell("job1")
    assert busy.states("job1") == ["completed"]


NO_TAGS = [{}, {"Tags": None}, {"Tags": {}}, {"Tags": []}, {"Tags": [{"Key": "x", "Value": "y"}]}]
ALLOWED = {"pools": [{"name": "main", "capacity": {A: 2}}], "unmanaged_jobs": {"then": "allow"}}


@pytest.mark.parametrize("detail", NO_TAGS, ids=str)
def test_N13_an_event_of_ours_without_tags_is_known_by_its_alias(
    detail: dict[str, Any], new_world: NewWorld
) -> None:
    world = new_world(ALLOWED)
    world.submit("job1")
    world.schedule()
    world.sagemaker.end("job1", "Completed")
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "job1", **detail}})
    assert world.states("job1") == ["completed"]


@pytest.mark.parametrize("detail", NO_TAGS, ids=str)
def test_N13_the_same_of_a_foreign_job_changes_nothing(detail: dict[str, Any], new_world: NewWorld) -> None:
    world = new_world(ALLOWED)
    world.sagemaker.run_outside(request("foreign"))
    before = world.items()
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "foreign", **detail}})
    assert world.items() == before
    assert world.calls_of(world.schedule) == ["ReceiveMessage"], "nobody is woken"


def test_B6_news_of_a_training_job_that_is_gone_already_change_nothing(busy: World) -> None:
    event = {"detail": {"TrainingJobName": "x", "Tags": {}}}
    before = busy.items()
    calls = busy.calls_of(lambda: busy.call("on_training_job_event", event))
    assert calls == ["GetItem", "GetItem", "DescribeTrainingJob"]  # its alias, the policy, itself
    assert busy.items() == before


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


def test_B8_a_huge_event_is_a_hint_like_any_other(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    event = state_change("job1", busy.sagemaker)
    event["detail"]["HyperParameters"] = {"text": "\x1b[2J\N{COLLISION SYMBOL}" * 200_000}
    busy.call("on_training_job_event", event)
    assert busy.states("job1") == ["completed"]


def test_B10_C6_a_job_that_completes_in_its_grace_time_does_not_come_back(preempting: World) -> None:
    ends(preempting, "job1", "Completed")
    assert preempting.states("job1", "job4") == ["completed", "running"]


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        pytest.param("AlgorithmError: ValueError: x, exit code: 1", "failed", id="a bug stays a bug"),
        pytest.param("InternalServerError: We encountered an internal error.", "pending", id="worth a retry"),
    ],
)
def test_B11_a_failure_while_it_is_preempted_is_judged_as_if_nobody_had_asked_it_to_stop(
    reason: str, state: str, preempting: World
) -> None:
    ends(preempting, "job1", "Failed", reason=reason)
    assert preempting.states("job1", "job4") == [state, "running"]
    job = preempting.job("job1")
    assert (job.comebacks.retries, job.preemptions) == (int(state == "pending"), 0)
    preempting.check("job1", "job2", "job4")


@pytest.mark.parametrize("operation", ["GetItem", "DescribeTrainingJob", "TransactWriteItems"])
def test_B9_an_end_that_could_not_be_written_for_hours_is_safe_to_redrive(
    operation: str, busy: World
) -> None:
    """Lambda tries an event three times and then keeps it; an operator sends it again."""
    busy.sagemaker.end("job1", "Completed")
    busy.wire.lasting[operation] = THROTTLED
    for _ in range(3):
        with pytest.raises(UnavailableError):
            busy.tell("job1")
    busy.wire.heal()
    busy.check("job1", "job2")
    busy.now += timedelta(hours=6)
    busy.tell("job1")
    busy.tell("job1")
    assert busy.states("job1") == ["completed"]
    busy.check("job1", "job2")


def test_B9_whatever_comes_without_an_asker_has_dead_letters_and_an_alarm_on_them() -> None:
    stack = resources()
    queues = {name for name in of_type(stack, "AWS::SQS::Queue") if name.endswith("DeadLetterQueue")}
    alarms = of_type(stack, "AWS::CloudWatch::Alarm").values()
    watched = {part["Value"] for alarm in alarms for part in alarm["Dimensions"]}
    configs = of_type(stack, "AWS::Lambda::EventInvokeConfig").values()
    kept = {config["DestinationConfig"]["OnFailure"]["Destination"] for config in configs}
    assert queues == {
        "DoorbellDeadLetterQueue",
        "OnTrainingJobEventDeadLetterQueue",
        "OnIdleAlarmDeadLetterQueue",
        "ReconcileDeadLetterQueue",
    }
    assert {f"${{{queue}.QueueName}}" for queue in queues} <= watched
    assert kept == {f"${{{queue}.Arn}}" for queue in queues - {"DoorbellDeadLetterQueue"}}


def test_B13_of_two_stacks_only_the_one_of_the_tag_acts(busy: World) -> None:
    """Both see the event of job1, and both know a job of that name."""
    event = state_change("job1", busy.sagemaker)
    event["detail"]["Tags"]["trainmaster:stack"] = "trainmaster-b"
    busy.sagemaker.end("job1", "Completed")
    busy.call("on_training_job_event", event)
    assert busy.states("job1") == ["running"]
