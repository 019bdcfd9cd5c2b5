"""L5: our operator and trigger: one job a try, found again by whoever has the task next, and its end."""

import asyncio
import inspect
import json
import logging
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.exceptions import AirflowException, AirflowFailException, TaskDeferred
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from airflow.utils.module_loading import import_string
from trainmaster_client.airflow import TrainmasterTrainingOperator, TrainmasterTrainingTrigger
from trainmaster_client.airflow.training_operator import run_of

from tests.airflow.fake_queue import FakeQueue
from tests.integration.client.fake_api import Scripted, problem

REQUEST: dict[str, Any] = {
    "TrainingJobName": "nightly",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": "2", "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "Tags": [{"Key": "priority", "Value": "3"}],
}
TAG = {"Key": "airflow-task", "Value": "dag/scheduled__2026-11-22T00:00:00+00:00/train/-1/0"}
RETRIES = 3


def operator(**options: Any) -> TrainmasterTrainingOperator:
    """As the DAG makes it, again for each try."""
    values = {"check_interval": 0, "print_log": False, "retries": RETRIES, **options}
    return TrainmasterTrainingOperator(task_id="train", config=json.loads(json.dumps(REQUEST)), **values)


def context(try_number: int = 1, *, cleared_tries: int = 0, run: str = "22") -> dict[str, Any]:
    task = SimpleNamespace(
        dag_id="dag",
        run_id=f"scheduled__2026-11-{run}T00:00:00+00:00",
        task_id="train",
        map_index=-1,
        try_number=try_number,
        max_tries=RETRIES + cleared_tries,
    )
    return {"ti": task}


def submit(try_number: int = 1, **which: Any) -> str:
    """The name of the job that a try has, which it does not wait for."""
    found = operator(wait_for_completion=False).execute(context(try_number, **which))
    name: str = found["Training"]["TrainingJobName"]
    return name


def test_the_task_waits_with_its_job_and_has_the_xcom_of_airflows_operator(queue: FakeQueue):
    queue.courses["nightly"] = ["pending", "pending", "running", "preempted", "running", "completed"]
    described = operator().execute(context())["Training"]
    assert (described["TrainingJobStatus"], described["SecondaryStatus"]) == ("Completed", "Completed")
    assert described["ModelArtifacts"]["S3ModelArtifacts"] == "s3://bucket/out/nightly/output/model.tar.gz"
    (request,) = queue.jobs.values()
    assert request["Tags"] == [*REQUEST["Tags"], TAG]
    assert request["ResourceConfig"]["InstanceCount"] == 2, "templates make strings of numbers"
    assert {operation for operation, _ in queue.sagemaker.calls} == {"DescribeTrainingJob"}


def test_a_retry_attaches_to_the_job_that_still_waits(queue: FakeQueue):
    assert [submit(1), submit(2), submit(3)] == ["nightly"] * 3
    assert list(queue.jobs) == ["nightly"]


def test_a_retry_finds_the_job_that_completed_meanwhile(queue: FakeQueue):
    submit(1)
    queue.courses["nightly"] = ["completed"]
    assert operator().execute(context(2))["Training"]["TrainingJobStatus"] == "Completed"
    assert list(queue.jobs) == ["nightly"]


@pytest.mark.parametrize("end", ["failed", "stopped"])
def test_a_retry_after_a_job_that_did_not_complete_submits_one_more_and_the_next_retry_has_that(
    queue: FakeQueue, end: str
):
    submit(1)
    queue.courses["nightly"] = [end]
    second = submit(2)
    assert second.startswith("nightly-")
    assert submit(3) == second
    assert list(queue.jobs) == ["nightly", second]
    queue.courses[second] = [end]
    assert submit(4) not in {"nightly", second}


def test_a_task_that_was_cleared_after_its_job_completed_trains_again(queue: FakeQueue):
    submit(1)
    queue.courses["nightly"] = ["completed"]
    again = submit(2, cleared_tries=1)
    assert again != "nightly"
    queue.courses[again] = ["completed"]
    assert submit(3, cleared_tries=1) == again, "a retry of that finds it"


def test_a_task_that_was_cleared_while_its_job_waits_attaches_to_it(queue: FakeQueue):
    submit(1)
    assert submit(2, cleared_tries=1) == "nightly"
    assert list(queue.jobs) == ["nightly"]


def test_the_next_run_of_the_dag_takes_another_name_the_same_at_each_try(queue: FakeQueue):
    submit(run="22")
    other = submit(1, run="23")
    assert (other != "nightly", len(other) <= 63) == (True, True)
    assert submit(2, run="23") == other


def test_with_fail_the_name_of_another_fails_and_the_own_job_is_attached_to(queue: FakeQueue):
    name = {"action_if_job_exists": "fail", "wait_for_completion": False}
    operator(**name).execute(context())
    operator(**name).execute(context(2))
    with pytest.raises(AirflowException, match="nightly already exists: it is another's"):
        operator(**name).execute(context(run="23"))
    queue.courses["nightly"] = ["failed"]
    with pytest.raises(AirflowException, match="nightly already exists: it is this task's, and over"):
        operator(**name).execute(context(2))
    assert list(queue.jobs) == ["nightly"]


def test_a_job_that_only_sagemaker_knows_keeps_its_name(queue: FakeQueue):
    queue.sagemaker.answers["DescribeTrainingJob"] = lambda body: {
        "TrainingJobName": body["TrainingJobName"],
        "TrainingJobStatus": "Completed",
    }
    with suppress(AirflowException):
        submit()
    assert list(queue.jobs) == [], "each name is taken in this account"
    with pytest.raises(AirflowException, match="Use another TrainingJobName"):
        submit()


def test_a_job_of_another_team_keeps_its_name(queue: FakeQueue):
    queue.hidden.add("nightly")
    assert submit() != "nightly"


@pytest.mark.parametrize("looks", [1, 2], ids=["before it looked at SageMaker", "before it submitted"])
def test_of_two_workers_with_one_task_the_second_attaches_to_the_job_of_the_first(
    queue: FakeQueue, looks: int
):
    """It is refused, as its templates may have given it another body."""
    submit()
    queue.failures += [problem(404, "Not found", "no job")] * looks
    second = operator(wait_for_completion=False)
    second.config["Environment"] = {"AT": "another time"}
    assert second.execute(context(2))["Training"]["TrainingJobName"] == "nightly"
    assert list(queue.jobs) == ["nightly"]


def test_a_name_that_is_taken_by_a_job_nobody_shows_is_left(queue: FakeQueue):
    missing = problem(404, "Not found", "no job")
    answers = [missing, missing, problem(409, "Conflict", "TrainingJobName: is in use"), missing]
    queue.failures += answers
    name = submit()
    assert (list(queue.jobs), name != "nightly") == ([name], True)
    queue.failures += answers
    with pytest.raises(AirflowException, match="already exists: it is another's"):
        operator(action_if_job_exists="fail").execute(context())


def test_without_a_look_at_names_a_submission_is_still_one(queue: FakeQueue):
    options = {"check_if_job_exists": False, "wait_for_completion": False}
    for number in (1, 2):
        operator(**options).execute(context(number))
    assert list(queue.jobs) == ["nightly"]
    with pytest.raises(AirflowException, match="another's"):
        operator(**options).execute(context(run="23"))


def test_a_lost_answer_to_a_submission_is_asked_for_again(queue: FakeQueue):
    lost = Scripted(status=503, document={"title": "Unavailable", "detail": "busy"})
    queue.failures += [problem(404, "Not found", "no job"), problem(404, "Not found", "no job"), lost]
    assert submit() == "nightly"
    assert list(queue.jobs) == ["nightly"]


def test_a_failed_job_fails_the_task_with_sagemakers_reason(queue: FakeQueue):
    queue.courses["nightly"] = ["pending", "failed"]
    queue.reasons["nightly"] = {"code": "user-code", "message": "exit code 1"}
    with pytest.raises(AirflowException, match="nightly failed: AlgorithmError: exit code 1") as caught:
        operator().execute(context())
    assert not isinstance(caught.value, AirflowFailException), "Airflow retries it"


def test_a_job_that_a_user_stopped_fails_the_task_for_good_and_says_who(queue: FakeQueue):
    queue.courses["nightly"] = ["pending", "stopped"]
    queue.reasons["nightly"] = {
        "code": "stopped-by-user",
        "message": "stopped by arn:aws:iam::123456789012:user/ann",
    }
    with pytest.raises(AirflowFailException, match=r"nightly was stopped: stopped-by-user: .*user/ann"):
        operator().execute(context())


def test_a_job_that_something_else_stopped_may_be_tried_again(queue: FakeQueue):
    queue.courses["nightly"] = ["stopped"]
    queue.reasons["nightly"] = {"code": "max-wait", "message": "waited for 2 days"}
    with pytest.raises(AirflowException, match="max-wait") as caught:
        operator().execute(context())
    assert not isinstance(caught.value, AirflowFailException)


def test_a_request_that_the_policy_forbids_is_not_tried_again(queue: FakeQueue):
    error = {"field": "ResourceConfig.InstanceType", "message": "is not in a pool", "hint": "", "rule": ""}
    missing = problem(404, "Not found", "no job")
    queue.failures += [missing, missing, problem(422, "Against the policy", "1 violation", error)]
    with pytest.raises(AirflowFailException, match=r"ResourceConfig\.InstanceType: is not in a pool"):
        operator().execute(context())


def test_past_its_time_the_task_fails_and_the_job_stays(queue: FakeQueue, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AirflowException, match="nightly is pending after max_ingestion_time"):
        operator(max_ingestion_time=0.01).execute(context())
    assert queue.cancelled == []


def deferred(queue: FakeQueue, **options: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as caught:
        operator(deferrable=True, **options).execute(context())
    return caught.value


def elsewhere(trigger: Any) -> TrainmasterTrainingTrigger:
    """As a triggerer makes it of what the database has."""
    classpath, arguments = json.loads(json.dumps(trigger.serialize()))
    found: TrainmasterTrainingTrigger = import_string(classpath)(**arguments)
    return found


async def first_event(trigger: TrainmasterTrainingTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError


def test_a_deferred_task_ends_with_its_job(queue: FakeQueue, monkeypatch: pytest.MonkeyPatch):
    found = deferred(queue)
    monkeypatch.delenv("TRAINMASTER_API_URL")  # the trigger has it from the worker
    queue.courses["nightly"] = ["pending", "preempted", "running", "completed"]
    event = asyncio.run(first_event(elsewhere(found.trigger)))
    assert event == {"status": "completed", "job_name": "nightly", "message": ""}
    resumed = operator(deferrable=True, api_url=found.trigger.connection.api_url)
    result = getattr(resumed, found.method_name)(context(), event)
    assert result["Training"]["TrainingJobStatus"] == "Completed"
    assert list(queue.jobs) == ["nightly"]


def test_a_triggerer_that_starts_again_waits_on(queue: FakeQueue):
    trigger = deferred(queue).trigger

    async def killed() -> None:
        task = asyncio.create_task(first_event(elsewhere(trigger)))
        await asyncio.sleep(0.02)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(killed())
    assert queue.cancelled == []
    queue.courses["nightly"] = ["failed"]
    event = asyncio.run(first_event(elsewhere(trigger)))
    assert event["status"] == "failed"
    with pytest.raises(AirflowException, match="nightly failed: AlgorithmError"):
        operator(deferrable=True).execute_complete(context(), event)


def test_a_job_that_has_ended_is_not_waited_for(queue: FakeQueue):
    queue.courses["nightly"] = ["completed"]
    result = operator(deferrable=True).execute(context())
    assert result["Training"]["TrainingJobStatus"] == "Completed"


def test_a_trigger_bears_with_a_queue_that_does_not_answer_for_a_while(queue: FakeQueue):
    trigger = deferred(queue).trigger
    queue.courses["nightly"] = ["pending", "completed"]
    queue.failures += [Scripted(status=503, document={"title": "Unavailable"})] * 7
    assert asyncio.run(first_event(elsewhere(trigger)))["status"] == "completed"


def test_a_job_that_the_queue_no_longer_knows_fails_the_task_and_no_trigger_for_ever(queue: FakeQueue):
    trigger = deferred(queue).trigger
    queue.jobs.clear()
    event = asyncio.run(first_event(elsewhere(trigger)))
    assert event["status"] == "unknown"
    with pytest.raises(AirflowException, match="could not see the end of the job: Not found"):
        operator(deferrable=True).execute_complete(context(), event)
    with pytest.raises(AirflowException, match="could not see the end"):
        operator(deferrable=True).execute_complete(context(), None)


@pytest.mark.parametrize(("position", "longest"), [(1, 30), (2, 30), (3, 60), (40, 60)])
def test_pauses_of_a_trigger_are_spread_and_longer_far_from_the_turn(
    queue: FakeQueue, monkeypatch: pytest.MonkeyPatch, position: int, longest: float
):
    trigger = deferred(queue, check_interval=30).trigger
    queue.courses["nightly"] = [*["pending"] * 40, "completed"]
    queue.position = position
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("trainmaster_client.airflow.training_trigger.asyncio.sleep", sleep)
    asyncio.run(first_event(elsewhere(trigger)))
    # The age of an answer comes off, too: milliseconds, or more where the machine is busy.
    assert 0.5 * longest <= min(pauses) < 0.87 * longest, pauses
    assert 0.9 * longest < max(pauses) <= longest, pauses


def test_a_killed_task_cancels_its_job(queue: FakeQueue):
    killed = operator(wait_for_completion=False)
    killed.execute(context())
    killed.on_kill()
    assert queue.cancelled == ["nightly"]


def test_a_killed_task_leaves_its_job_where_the_dag_says_so(queue: FakeQueue):
    killed = operator(wait_for_completion=False, cancel_on_kill=False)
    killed.execute(context())
    killed.on_kill()
    operator().on_kill()
    assert queue.cancelled == []


def test_a_task_that_is_killed_within_its_submission_cancels_nobody_elses_job(queue: FakeQueue):
    submit(run="21")
    killed = operator()
    killed._claimed = (run_of(context()["ti"], retries=RETRIES), "nightly")
    killed.on_kill()
    assert queue.cancelled == []


def test_a_kill_goes_on_where_the_queue_does_not_answer(queue: FakeQueue, caplog: pytest.LogCaptureFixture):
    killed = operator(wait_for_completion=False)
    killed.execute(context())
    queue.failures += [problem(500, "Failed", "a mistake of ours")] * 3
    with caplog.at_level(logging.WARNING):
        killed.on_kill()
    assert queue.cancelled == []


def test_a_deferred_task_that_a_user_kills_cancels_its_job_where_airflow_says_so(queue: FakeQueue):
    """Airflow calls ``on_kill`` of triggers since 3.3."""
    trigger = elsewhere(deferred(queue).trigger)
    asyncio.run(trigger.on_kill())
    assert queue.cancelled == ["nightly"]
    trigger.cancel_on_kill = False
    asyncio.run(trigger.on_kill())
    assert queue.cancelled == ["nightly"]


def test_switching_is_a_change_of_the_import():
    theirs = inspect.signature(SageMakerTrainingOperator.__init__).parameters
    wanted: dict[str, Any] = {"config": REQUEST, "deferrable": True, "check_interval": 60, "max_attempts": 3}
    assert set(wanted) <= set(theirs)
    made = TrainmasterTrainingOperator(
        task_id="train", aws_conn_id="other", region_name="eu-west-2", **wanted
    )
    assert isinstance(made, SageMakerTrainingOperator)
    assert {"config", "api_url", "aws_conn_id", "region_name"} <= set(made.template_fields)


def test_only_this_module_of_the_client_needs_airflow():
    code = "import sys, trainmaster_client.hook, trainmaster_client.api, trainmaster_client.jobs.task_jobs"
    check = (
        f"{code}; assert not [one for one in sys.modules if one == 'airflow' or one.startswith('airflow.')]"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
