"""L5: Airflow's own operator in a process whose every session queues, and what the guide warns of."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.exceptions import AirflowException, TaskDeferred
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from trainmaster_client.hook import install, uninstall

from tests.airflow.fake_queue import FakeQueue
from tests.airflow.test_operator import REQUEST


@pytest.fixture(autouse=True)
def installed(queue: FakeQueue) -> Iterator[None]:
    install()
    yield
    uninstall()


def execute(**options: Any) -> Any:
    config = json.loads(json.dumps(REQUEST))
    values = {"check_interval": 0, "print_log": False, **options}
    return SageMakerTrainingOperator(task_id="train", config=config, **values).execute({})


def test_a_task_that_is_tried_again_submits_a_second_job_unless_it_shall_fail_then(queue: FakeQueue):
    execute(wait_for_completion=False)
    execute(wait_for_completion=False)
    assert len(queue.jobs) == 2
    with pytest.raises(AirflowException, match="nightly already exists"):
        execute(wait_for_completion=False, action_if_job_exists="fail")
    assert len(queue.jobs) == 2


def test_a_deferrable_task_looks_sixty_times_unless_told_otherwise(queue: FakeQueue):
    for options, looks in (({}, 60), ({"max_attempts": 20_000}, 20_000)):
        with pytest.raises(TaskDeferred) as caught:
            execute(deferrable=True, **options)
        assert caught.value.trigger.attempts == looks


def test_a_job_that_is_cancelled_while_it_waits_is_an_error_of_airflows(queue: FakeQueue):
    """It has no time at which its training began."""
    queue.courses["nightly"] = ["pending", "stopped"]
    queue.sagemaker.answers["DescribeTrainingJob"] = lambda _: (
        400,
        {"__type": "ValidationException", "message": "Requested resource not found."},
    )
    with pytest.raises(KeyError, match="TrainingStartTime"):
        execute()
