"""An array as one task of Airflow: submitted once, waited for as one, found again by a retry."""

import asyncio
from typing import Any

import pytest
from airflow.exceptions import AirflowException, AirflowFailException, TaskDeferred
from trainmaster_client.airflow import TrainmasterTrainingTrigger

from tests.airflow.fake_queue import FakeQueue
from tests.airflow.test_operator import REQUEST, TAG, context, operator

VALUES = {"lr": ["0.1", "0.2", "0.3", "0.4"]}


def array_operator(**options: Any) -> Any:
    made = operator(array="0-3%2", values=VALUES, after="prepare", **options)
    made.config["HyperParameters"] = {"lr": "0.1"}
    return made


def test_the_task_waits_with_its_array_and_answers_its_description(queue: FakeQueue, caplog: Any):
    queue.courses["nightly"] = ["pending", "running", "completed"]
    with caplog.at_level("INFO"):
        described = array_operator().execute(context())["Training"]
    assert (described["TrainingJobName"], described["TrainingJobStatus"]) == ("nightly", "Completed")
    body = queue.arrays["nightly"]
    assert (body["tasks"], body["at_most"], body["values"]) == ("0-3", 2, VALUES)
    tags = [*REQUEST["Tags"], {"Key": "trainmaster:after", "Value": "prepare"}, TAG]
    assert body["request"]["Tags"] == tags
    assert "nightly: completed, 4 of 4 completed" in caplog.text


def test_a_retry_attaches_to_the_array_of_its_task(queue: FakeQueue):
    array_operator(wait_for_completion=False).execute(context(1))
    array_operator(wait_for_completion=False).execute(context(2))
    assert list(queue.arrays) == ["nightly"]


def test_an_array_that_failed_fails_the_task_and_the_next_try_has_another(queue: FakeQueue):
    queue.courses["nightly"] = ["running", "failed"]
    with pytest.raises(AirflowException, match="nightly failed: 1 of 4 tasks failed: 2"):
        array_operator().execute(context(1))
    array_operator(wait_for_completion=False).execute(context(2))
    assert len(queue.arrays) == 2


def test_values_that_do_not_fit_fail_for_good(queue: FakeQueue):
    made = operator(values=[{"lrr": 1}])
    made.config["HyperParameters"] = {"lr": "0.1"}
    with pytest.raises(AirflowFailException, match="did you mean lr"):
        made.execute(context())
    assert queue.arrays == {}


def test_a_deferred_task_is_woken_at_the_end_of_the_array(queue: FakeQueue):
    queue.courses["nightly"] = ["running"]
    with pytest.raises(TaskDeferred) as deferred:
        array_operator(deferrable=True).execute(context())
    queue.courses["nightly"] = ["running", "failed"]
    trigger = deferred.value.trigger
    assert isinstance(trigger, TrainmasterTrainingTrigger)

    async def fired() -> Any:
        return [event.payload async for event in trigger.run()]

    (event,) = asyncio.run(fired())
    assert (event["status"], event["message"]) == ("failed", "1 of 4 tasks failed: 2")


def test_a_task_that_is_killed_cancels_its_array(queue: FakeQueue):
    made = array_operator(wait_for_completion=False)
    made.execute(context())
    made.on_kill()
    assert queue.cancelled == ["nightly"]
