"""What each call of the SageMaker SDK v2 does with jobs of the queue, and what goes past it."""

import json
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
import sagemaker.remote_function.job
from botocore.exceptions import ClientError
from sagemaker.estimator import Estimator
from sagemaker.processing import Processor
from sagemaker.transformer import Transformer
from sagemaker.workflow.pipeline_context import PipelineSession
from trainmaster_client.bypasses import Bypasses, QueueBypassWarning
from trainmaster_client.hooks.botocore_events import answered, register
from trainmaster_client.jobs.queued_jobs import RecentlyUsed
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    problem,
    view,
)
from tests.integration.client.fake_aws import Document, FakeAws
from tests.integration.client.sdk_world import ROLE, World, estimator, running_world, script_job

ARNS = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
REQUEST: Document = {
    "TrainingJobName": "job1",
    "RoleArn": ROLE,
    "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
    "HyperParameters": {"steps": "3"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "Tags": [{"Key": "priority", "Value": "3"}],
}
BOTH = [
    {"attempt": 0, "training_job_name": "job1", "training_job_arn": f"{ARNS}job1"},
    {"attempt": 1, "training_job_name": "job1-r1-abcdef", "training_job_arn": f"{ARNS}job1-r1-abcdef"},
]
DONE = view(state="completed", attempts=BOTH, training_job_name="job1-r1-abcdef", waiting=None)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world() as running:
        yield running


@pytest.fixture
def api(world: World) -> FakeApi:
    world.forget()
    world.session._hooks._attempts._over = RecentlyUsed()
    world.session._hooks._bypasses._warned.clear()
    return world.api


@pytest.fixture
def aws(world: World, api: FakeApi) -> FakeAws:
    world.aws.answers["DescribeTrainingJob"] = described
    return world.aws


@pytest.fixture
def session(world: World, aws: FakeAws) -> QueueTrainingJobSession:
    return world.session


def described(body: Document) -> Document:
    """As SageMaker answers for an attempt that has ended."""
    name = body["TrainingJobName"]
    return {
        **{key: value for key, value in REQUEST.items() if key != "Tags"},
        "TrainingJobName": name,
        "TrainingJobArn": ARNS + name,
        "TrainingJobStatus": "Completed" if "-r1-" in name else "Stopped",
        "SecondaryStatus": "Completed" if "-r1-" in name else "Stopped",
        "OutputDataConfig": {"KmsKeyId": "", "S3OutputPath": "s3://bucket/out"},
        "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/out/{name}/output/model.tar.gz"},
        "CreationTime": NOON.timestamp(),
        "TrainingStartTime": NOON.timestamp(),
        "TrainingEndTime": NOON.timestamp() + 600,
    }


def queued(**fields: Any) -> Document:
    return {**view(history=history(("pending", 0, "")), **fields), "request": REQUEST}


def test_attaching_to_a_job_that_waits_waits_for_it_in_any_process(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    script_job(api, queued(), queued(), queued(), {**DONE, "request": REQUEST})
    found = Estimator.attach("job1", sagemaker_session=session)
    assert found.latest_training_job.name == "job1"
    assert found.hyperparameters() == {"steps": "3"}
    assert found.tags == [{"Key": "priority", "Value": "3"}]
    assert "Waiting, position 3 in pool p5" in capsys.readouterr().out


def test_an_attached_estimator_has_the_model_of_the_last_attempt_and_deploys_it(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws
) -> None:
    script_job(api, {**DONE, "request": REQUEST})
    found = Estimator.attach("job1", sagemaker_session=session)
    assert found.model_data == "s3://bucket/out/job1-r1-abcdef/output/model.tar.gz"
    for operation in ("CreateModel", "CreateEndpointConfig", "CreateEndpoint"):
        aws.answers[operation] = lambda _: {
            f"{name}Arn": "arn:x" for name in ("Model", "EndpointConfig", "Endpoint")
        }
    found.deploy(initial_instance_count=1, instance_type="ml.m5.large", wait=False)
    bodies = dict(aws.calls)
    assert bodies["CreateModel"]["PrimaryContainer"]["ModelDataUrl"] == found.model_data
    assert aws.operations()[-3:] == ["CreateModel", "CreateEndpointConfig", "CreateEndpoint"]


def test_describing_and_stopping_the_latest_job_speak_with_the_queue(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws
) -> None:
    script_job(api, queued())
    api.script("DELETE", "/jobs/job1", Scripted(status=202, document=view(state="stopped")))
    job = estimator(session)
    job.fit(wait=False, job_name="job1")
    assert job.latest_training_job.describe()["SecondaryStatus"] == "Pending"
    job.latest_training_job.stop()
    assert api.calls()[-1] == "DELETE /jobs/job1"
    assert aws.calls == []


def test_a_name_that_is_taken_is_an_error_and_the_same_request_again_is_the_same_job(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.script("POST", "/add-job", Scripted(document={"job": view(state="running"), "warnings": []}))
    estimator(session).fit(wait=False, job_name="job1")
    assert "job1 is already there: running." in capsys.readouterr().out
    api.script("POST", "/add-job", problem(409, "The name is taken", "the job is running"))
    with pytest.raises(Exception, match="The name is taken"):
        estimator(session).fit(wait=False, job_name="job1")


def test_metrics_are_those_of_all_attempts(session: QueueTrainingJobSession, api: FakeApi) -> None:
    script_job(api, {**DONE, "request": REQUEST})
    values = {"job1": [(0, 3.0), (60, 2.0)], "job1-r1-abcdef": [(60, 1.5), (120, 1.0)]}
    asked: list[str] = []

    def note(params: Document, **_: object) -> None:
        asked.append(params["Dimensions"][0]["Value"])

    def answer(**_: object) -> Any:
        points = values[asked[-1]]
        times = [{"Timestamp": NOON + timedelta(seconds=at), "Average": value} for at, value in points]
        return answered({"Label": "loss", "Datapoints": times})

    events = session.boto_session.events
    events.register("provide-client-params.cloudwatch.GetMetricStatistics", note)
    events.register("before-call.cloudwatch.GetMetricStatistics", answer)
    try:
        job = estimator(session)
        job.fit(wait=False, job_name="job1")
        frame = sagemaker.analytics.TrainingJobAnalytics(
            "job1", ["loss"], sagemaker_session=session
        ).dataframe()
    finally:
        events.unregister("provide-client-params.cloudwatch.GetMetricStatistics", note)
        events.unregister("before-call.cloudwatch.GetMetricStatistics", answer)
    assert asked == ["job1", "job1-r1-abcdef"]
    assert list(zip(frame["timestamp"], frame["value"], strict=True)) == [(0, 3.0), (60, 1.5), (120, 1.0)]


def test_a_remote_function_is_queued_and_looked_at_like_a_job(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_job(api, queued())
    remote = sagemaker.remote_function.job
    monkeypatch.setattr(remote._Job, "compile", staticmethod(lambda **_: REQUEST))
    monkeypatch.setattr(remote._Job, "_get_job_name", staticmethod(lambda *_: "job1"))
    settings = type("Settings", (), {"sagemaker_session": session, "s3_root_uri": "s3://bucket/out"})()
    job = remote._Job.start(settings, print, (), {})
    assert json.loads(api.received[0].body) == REQUEST
    assert job.describe()["SecondaryStatus"] == "Pending"
    assert aws.calls == []


def test_a_pipeline_session_starts_nothing_at_all(api: FakeApi, aws: FakeAws) -> None:
    boto_session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    aws.attach(boto_session)
    with pytest.warns(UserWarning, match="No Job being started"):
        step = estimator(PipelineSession(boto_session, default_bucket="bucket")).fit(job_name="job1")
    assert type(step).__name__ == "_StepArguments"
    assert (api.calls(), aws.calls) == ([], [])


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        pytest.param([{"Name": "a", "Type": "Processing"}], 0, id="without training"),
        pytest.param([{"Name": "a", "Type": "Training"}], 1, id="with training"),
        pytest.param([{"Name": "a", "Type": "Tuning"}], 1, id="with tuning"),
        pytest.param("no list", 0, id="not readable"),
    ],
)
def test_a_pipeline_that_trains_bypasses_the_queue_with_a_warning(
    steps: Any, told: int, session: QueueTrainingJobSession, aws: FakeAws
) -> None:
    aws.answers["CreatePipeline"] = lambda _: {"PipelineArn": "arn:x"}
    definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        session.sagemaker_client.create_pipeline(
            PipelineName="p", PipelineDefinition=definition, ClientRequestToken="t" * 32, RoleArn=ROLE
        )
    assert [one.category for one in seen] == [QueueBypassWarning] * told
    assert aws.operations() == ["CreatePipeline"]


def test_a_training_job_of_aws_batch_bypasses_the_queue_with_a_warning(aws: FakeAws) -> None:
    boto_session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    aws.attach(boto_session)
    aws.answers["SubmitServiceJob"] = lambda _: {"jobArn": "arn:x", "jobName": "job1", "jobId": "1"}
    for event, warn in Bypasses().handlers():
        register(boto_session.events, event, warn)
    with pytest.warns(QueueBypassWarning, match="AWS Batch starts the training jobs of its queues"):
        boto_session.client("batch").submit_service_job(
            jobName="job1", jobQueue="q", serviceJobType="SAGEMAKER_TRAINING", serviceRequestPayload="{}"
        )


def test_local_mode_wants_the_sdks_own_local_session(session: QueueTrainingJobSession, api: FakeApi) -> None:
    with pytest.raises(RuntimeError, match="LocalSession"):
        estimator(session, instance_type="local", instance_count=1)
    assert api.calls() == []


def test_processing_and_transform_go_straight_to_sagemaker(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws
) -> None:
    aws.answers["CreateProcessingJob"] = lambda _: {"ProcessingJobArn": "arn:x"}
    aws.answers["CreateTransformJob"] = lambda _: {"TransformJobArn": "arn:x"}
    Processor(
        role=ROLE, image_uri=IMAGE, instance_count=1, instance_type="ml.m5.large", sagemaker_session=session
    ).run(wait=False, logs=False)
    Transformer(
        "model",
        1,
        "ml.m5.large",
        output_path="s3://b/t",
        sagemaker_session=session,
        base_transform_job_name="t",
    ).transform("s3://bucket/in", wait=False, logs=False)
    assert aws.operations() == ["CreateProcessingJob", "CreateTransformJob"]
    assert api.calls() == []


def test_a_name_with_a_slash_is_refused_by_the_one_who_is_asked(
    session: QueueTrainingJobSession, api: FakeApi, aws: FakeAws
) -> None:
    wrong = {"field": "TrainingJobName", "message": "is not a name", "hint": "letters, digits, hyphens"}
    api.script("POST", "/add-job", problem(400, "Invalid request", "1 problem", wrong))
    with pytest.raises(Exception, match="TrainingJobName: is not a name; letters, digits, hyphens"):
        estimator(session).fit(wait=False, job_name="team/job1")
    aws.answers["DescribeTrainingJob"] = lambda _: {"__type": "ValidationException", "message": "pattern"}
    with pytest.raises(ClientError, match="pattern"):
        session.describe_training_job("team/job1")
