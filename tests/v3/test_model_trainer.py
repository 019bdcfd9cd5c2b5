"""``ModelTrainer.train()`` as its users know it, through the queue: only the session is hooked."""

import logging
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from sagemaker.core.resources import Endpoint, EndpointConfig, Model, TrainingJob
from sagemaker.core.shapes import ContainerDefinition, ProductionVariant
from sagemaker.core.utils.exceptions import FailedStatusError
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import InvalidOptionsError, UnsupportedTrainerError
from trainmaster_client.hook import install
from trainmaster_client.trainer import attach, queue

from local.twin_process import TwinProcess
from tests.v3.training import IMAGE, eventually, job_of, session_of, trainer

pytestmark = pytest.mark.usefixtures("can_run_jobs")


@pytest.fixture
def api(configured: TwinProcess) -> ApiClient:
    return ApiClient(configured.ready["api_url"], boto3.Session())


def reaches(api: ApiClient, name: str, *states: str) -> None:
    eventually(lambda: api.job(name, estimate=False)["state"], lambda state: state in states)


def test_train_waits_prints_the_scripts_lines_and_knows_the_model(
    configured: TwinProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    boto_session = boto3.Session()
    install(boto_session)
    session = session_of(configured, boto_session)
    model = trainer(configured, tmp_path, "plain", session=session)
    with caplog.at_level(logging.INFO, "sagemaker.core.resources"):
        model.train(wait=True, logs=True)
    job = job_of(model)
    assert job.training_job_status == "Completed"
    assert any(
        f"{job.training_job_name} from step 0 with ['--epochs', '3']" in line for line in caplog.messages
    )
    bucket = configured.ready["bucket"]
    assert job.model_artifacts.s3_model_artifacts == (
        f"s3://{bucket}/plain/{job.training_job_name}/output/model.tar.gz"
    )


def test_a_preempted_job_is_one_job_with_one_log_and_the_model_of_its_last_attempt(
    configured: TwinProcess, api: ApiClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    low = queue(trainer(configured, tmp_path, "low", environment={"STEPS": "60"}), priority=1)
    low.train(wait=False)
    job = job_of(low)
    name = job.training_job_name
    eventually(lambda: job.refresh().secondary_status, lambda status: status == "Training")
    high = queue(trainer(configured, tmp_path, "high"), priority=5)
    high.train(wait=False)
    with caplog.at_level(logging.INFO, "sagemaker.core.resources"):
        job.wait(poll=1, logs=True)
    last = api.job(name)["training_job_name"]
    assert last.startswith(f"{name}-r1-")
    assert job.training_job_name == name
    lines = [
        line.partition("\n")[2] for line in caplog.messages if " from step " in line or "is done" in line
    ]
    assert lines[0] == f"{name} from step 0 with ['--epochs', '3']"
    assert lines[1].startswith(f"{last} from step ")
    assert not lines[1].startswith(f"{last} from step 0 ")
    assert lines[2:] == [f"{last} is done"]
    assert job.model_artifacts.s3_model_artifacts.endswith(f"/low/{last}/output/model.tar.gz")
    waits = [one.status_message for one in job.secondary_status_transitions if one.status == "Pending"]
    assert f"preemption: made room for {job_of(high).training_job_name}" in waits
    assert deployed(job, low.sagemaker_session.boto_session) == (
        "InService",
        job.model_artifacts.s3_model_artifacts,
    )


def deployed(job: TrainingJob, session: boto3.Session) -> tuple[str, str]:
    """An endpoint with the model of a job: its status, and whence the model takes its data."""
    container = ContainerDefinition(image=IMAGE, model_data_url=job.model_artifacts.s3_model_artifacts)
    model = Model.create(
        model_name="low", primary_container=container, execution_role_arn=job.role_arn, session=session
    )
    variant = ProductionVariant(
        variant_name="all", model_name="low", instance_type="ml.m5.xlarge", initial_instance_count=1
    )
    EndpointConfig.create(endpoint_config_name="low", production_variants=[variant], session=session)
    endpoint = Endpoint.create(endpoint_name="low", endpoint_config_name="low", session=session)
    endpoint.wait_for_status("InService", poll=1)
    return endpoint.endpoint_status, model.primary_container.model_data_url


def test_a_waiting_job_says_why_and_can_be_stopped_before_it_ran(
    configured: TwinProcess, api: ApiClient, tmp_path: Path
) -> None:
    first = queue(trainer(configured, tmp_path, "runs", environment={"STEPS": "600"}), priority=5)
    first.train(wait=False)
    reaches(api, job_of(first).training_job_name, "running")
    second = queue(trainer(configured, tmp_path, "waits"))
    second.train(wait=False)
    job = job_of(second)
    eventually(lambda: job.refresh().secondary_status_transitions[-1].status_message, bool)
    assert (job.training_job_status, job.secondary_status) == ("InProgress", "Pending")
    assert "capacity" in job.secondary_status_transitions[-1].status_message
    job.stop()
    job.wait(poll=1)
    assert job.training_job_status == "Stopped"
    assert api.job(job.training_job_name)["attempts"] == []
    job_of(first).stop()
    job_of(first).wait(poll=1)
    assert job_of(first).training_job_status == "Stopped"


def test_a_job_that_fails_raises_the_sdks_error_with_its_own_reason(
    configured: TwinProcess, tmp_path: Path
) -> None:
    fails = queue(trainer(configured, tmp_path, "fails", environment={"FAILS": "no such column"}))
    fails.train(wait=False)
    with pytest.raises(FailedStatusError, match="exit code: 1 - user-code: The program failed"):
        job_of(fails).wait(poll=1)


def test_a_job_against_the_policy_is_refused_as_sagemaker_refuses(
    configured: TwinProcess, tmp_path: Path
) -> None:
    other = queue(trainer(configured, tmp_path, "other", instance_type="ml.m5.4xlarge"))
    with pytest.raises(ClientError) as caught:
        other.train(wait=False)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert "ml.m5.4xlarge" in str(caught.value)


def test_a_dry_run_sends_nothing_and_wrong_options_change_nothing(
    configured: TwinProcess, api: ApiClient, tmp_path: Path
) -> None:
    model = trainer(configured, tmp_path, "dry", tags=[{"key": "owner", "value": "ada"}])
    with pytest.raises(InvalidOptionsError, match="retries: 9 is not allowed"):
        queue(model, priority=5, retries=9)
    assert [tag.key for tag in model.tags] == ["owner"]
    queue(queue(model, priority=5), priority=6, team="vision")
    assert [(tag.key, tag.value) for tag in model.tags] == [
        ("owner", "ada"),
        ("priority", "6"),
        ("team", "vision"),
    ]
    before = len(configured.records())
    assert model.train(dry_run=True) is None
    calls = [one.get("operation") for one in configured.records()[before:]]
    assert "CreateTrainingJob" not in calls
    assert not [job for job in api.jobs()["jobs"] if str(job["name"]).startswith("dry")]


def test_a_session_that_the_sdk_has_used_before_is_hooked_with_the_clients_it_has(
    configured: TwinProcess, api: ApiClient, tmp_path: Path
) -> None:
    session = session_of(configured)
    with pytest.raises(ClientError, match="not found"):
        TrainingJob.get(training_job_name="nobody", session=session.boto_session)
    model = queue(trainer(configured, tmp_path, "late", session=session))
    model.train(wait=False)
    assert api.job(job_of(model).training_job_name)["attempt"] == 0


def test_another_process_attaches_to_a_job_by_its_name(
    configured: TwinProcess, api: ApiClient, tmp_path: Path
) -> None:
    model = queue(trainer(configured, tmp_path, "attached"))
    model.train(wait=False)
    job = attach(job_of(model).training_job_name)
    job.wait(poll=1)
    assert job.training_job_status == "Completed"


def test_a_trainer_on_this_machine_is_refused(configured: TwinProcess, tmp_path: Path) -> None:
    from sagemaker.train.model_trainer import Mode  # noqa: PLC0415  of this test alone

    local = trainer(configured, tmp_path, "here", training_mode=Mode.LOCAL_CONTAINER)
    with pytest.raises(UnsupportedTrainerError, match="LOCAL_CONTAINER"):
        queue(local)
