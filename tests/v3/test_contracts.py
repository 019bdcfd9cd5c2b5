"""What we lean on inside the SDK v3, held to what it was in sagemaker-train 1.27 and sagemaker-core 2.27.

A failure says what to look at before the versions in requirements-v3.in are raised.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.core.training.configs import Compute, SourceCode
from sagemaker.core.utils.logs import MultiLogStreamHandler
from sagemaker.core.utils.utils import SageMakerClient
from sagemaker.core.workflow.pipeline_context import PipelineSession
from sagemaker.train import ModelTrainer
from sagemaker.train.constants import DEFAULT_CONTAINER_ARGUMENTS, DEFAULT_CONTAINER_ENTRYPOINT
from trainmaster_client.errors import UnsupportedTrainerError
from trainmaster_client.hooks import botocore_events
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.trainer import queue, use_launcher

from local.sagemaker.spec import _SDK_V3_DRIVERS

API_URL = "http://127.0.0.1:9/_api/x/prod"
ROLE = "arn:aws:iam::123456789012:role/training"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",  # nobody listens: what is not answered here fails
        "SAGEMAKER_VALIDATE_ROLE": "false",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Session, "default_bucket", lambda _: "bucket")  # it asks S3 whether it is there


class Answers:
    """Answers the calls of a client before they are sent, and keeps what was asked."""

    def __init__(self, events: Any, **answers: dict[str, Any]) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers
        events.register("before-call", self._answer)

    def _answer(self, model: Any, params: dict[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]]:
        self.asked.append((model.name, json.loads(params["body"])))
        parsed = {**self._answers[model.name], "ResponseMetadata": {"HTTPStatusCode": 200}}
        return AWSResponse("", 200, HTTPHeaders(), None), parsed


DESCRIBED = {
    "TrainingJobName": "job",
    "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Pending",
}


def test_a_training_job_asks_with_the_clients_of_the_session_it_was_made_with() -> None:
    session = boto3.Session()
    answers = Answers(session.events, DescribeTrainingJob=DESCRIBED, StopTrainingJob={}, CreateTrainingJob={})
    job = TrainingJob.create(
        training_job_name="job",
        role_arn=ROLE,
        output_data_config={"s3_output_path": "s3://bucket"},
        session=session,
    )
    job.refresh()
    job.stop()
    named = [(operation, body["TrainingJobName"]) for operation, body in answers.asked]
    assert named == [
        ("CreateTrainingJob", "job"),
        ("DescribeTrainingJob", "job"),
        ("DescribeTrainingJob", "job"),
        ("StopTrainingJob", "job"),
    ], "TrainingJob asks in another way: see which client each method uses, and hook it in v3_trainer.py"


def test_the_sdk_keeps_one_client_for_a_session_and_tells_it_again() -> None:
    session = boto3.Session()
    kept = SageMakerClient(session=session).get_client("sagemaker")
    assert SageMakerClient(session=session).get_client("sagemaker") is kept, (
        "clients are kept in another way: trainer._hook has to find those that were made before queue()"
    )


def test_logs_are_read_with_one_client_of_the_process_that_is_found_once_it_is_made() -> None:
    what_to_do = "the log client is kept elsewhere: botocore_events._made_client has to find it there"
    assert botocore_events._made_client() is None, what_to_do
    reader = MultiLogStreamHandler("/aws/sagemaker/TrainingJobs", "job", 1)
    assert botocore_events._made_client() is reader.cw_client, what_to_do


def test_the_log_loop_lists_by_the_jobs_name_and_reads_forward_by_token() -> None:
    reader = MultiLogStreamHandler("/aws/sagemaker/TrainingJobs", "job", 1)
    stream = "job/algo-1-1795313542"
    answers = Answers(
        reader.cw_client.meta.events,
        DescribeLogStreams={"logStreams": [{"logStreamName": stream}]},
        GetLogEvents={"events": [], "nextForwardToken": "f/1"},
    )
    for _ in range(2):
        assert list(reader.get_latest_log_events()) == []
    group = "/aws/sagemaker/TrainingJobs"
    read = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
    assert answers.asked == [
        (
            "DescribeLogStreams",
            {"logGroupName": group, "logStreamNamePrefix": "job/", "orderBy": "LogStreamName"},
        ),
        ("GetLogEvents", read),
        ("GetLogEvents", {**read, "nextToken": "f/1"}),
    ], "the log loop asks in another way: hooks/cloudwatch_calls.py has to join attempts for it as it is now"


def test_only_a_failed_job_raises_in_wait() -> None:
    source = inspect.getsource(TrainingJob.wait)
    assert 'terminal_states = ["Completed", "Failed", "Stopped"]' in source, _WAIT
    assert "FailedStatusError" in source, _WAIT


_WAIT = "wait() ends in another way: see docs/sdk-v3.md, what it says of jobs that were stopped"


@pytest.fixture
def trainer(tmp_path: Path) -> ModelTrainer:
    return made_trainer(tmp_path, Session(boto3.Session()))


def made_trainer(folder: Path, session: Session) -> ModelTrainer:
    (folder / "train.py").write_text("", encoding="utf-8")
    return ModelTrainer(
        training_image=IMAGE,
        source_code=SourceCode(source_dir=str(folder), entry_script="train.py"),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
        role=ROLE,
        sagemaker_session=session,
        base_job_name="job",
    )


def test_train_makes_its_request_by_the_method_that_the_launcher_wraps(
    trainer: ModelTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "upload_data", lambda *_, **__: "s3://bucket/code")
    use_launcher(trainer)
    request = trainer._create_training_job_args()
    assert request["algorithm_specification"].container_entrypoint == LAUNCHER
    assert request["algorithm_specification"].container_arguments is None
    assert (
        trainer._create_training_job_args(boto3=True)["AlgorithmSpecification"]["ContainerEntrypoint"]
        == LAUNCHER
    )
    source = inspect.getsource(inspect.getmodule(ModelTrainer))  # type: ignore[arg-type]  # it has one
    assert "self._create_training_job_args(" in source, (
        "train() makes its request in another way: trainer.use_launcher has to change that one"
    )


def test_the_twin_knows_the_sdks_command_when_it_sees_one() -> None:
    assert DEFAULT_CONTAINER_ENTRYPOINT == ["/bin/bash"]
    assert any(_SDK_V3_DRIVERS in one for one in DEFAULT_CONTAINER_ARGUMENTS), (
        "the SDK starts jobs with another command: local/sagemaker/spec.py has to know it, to mount /opt/ml"
    )


def test_a_trainer_of_a_pipeline_is_refused(tmp_path: Path) -> None:
    trainer = made_trainer(tmp_path, PipelineSession(boto3.Session()))
    with pytest.raises(UnsupportedTrainerError, match="PipelineSession"):
        queue(trainer, api_url=API_URL)
