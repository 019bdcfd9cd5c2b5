"""``submit_array(trainer)`` of the SDK v3: ModelTrainer's own request, and one training job to its caller."""

from pathlib import Path

import boto3
import pytest
import trainmaster_client
from sagemaker.core.utils.exceptions import FailedStatusError
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import InvalidOptionsError

from local.twin_process import TwinProcess
from tests.v3.training import job_of, trainer

pytestmark = pytest.mark.usefixtures("can_run_jobs")


@pytest.fixture
def api(configured: TwinProcess) -> ApiClient:
    return ApiClient(configured.ready["api_url"], boto3.Session())


def test_a_trainer_trains_as_an_array_with_values_as_it_writes_them(
    configured: TwinProcess, api: ApiClient, tmp_path: Path
) -> None:
    model = trainer(configured, tmp_path, "swept")
    array = trainmaster_client.submit_array(model, values={"epochs": [3, 4]}, at_most=1)
    job = job_of(model)
    assert job.training_job_name == array.name
    assert job.training_job_status == "InProgress"
    tasks = api.array_tasks(array.name)["tasks"]
    assert [task["values"] for task in tasks] == [{"epochs": "3"}, {"epochs": "4"}]
    assert array.wait().state == "completed"
    assert job.refresh().training_job_status == "Completed"
    assert array.task(1).view.state == "completed"


def test_a_trainer_hears_of_tasks_that_failed(configured: TwinProcess, tmp_path: Path) -> None:
    model = trainer(configured, tmp_path, "broken", environment={"FAILS": "on purpose"})
    trainmaster_client.submit_array(model, tasks="0-1")
    with pytest.raises(FailedStatusError, match="2 of 2 tasks failed: 0-1"):
        job_of(model).wait(poll=1)


def test_a_value_that_the_trainer_does_not_know_is_refused(configured: TwinProcess, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionsError, match="of task 0 is no hyperparameter"):
        trainmaster_client.submit_array(trainer(configured, tmp_path, "typo"), values=[{"epoch": 1}])
