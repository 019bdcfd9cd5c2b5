"""The twin answers a real boto3 client, and each answer has the shape of the service model."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError
from botocore.model import StructureShape
from trainmaster_client.simulate.sources import Period, SageMakerReading, history_from_sagemaker

from local.validation import checked
from local.wire import AwsError
from tests.integration.local.sagemaker_world import (
    BUCKET,
    CALLER,
    REGION,
    World,
    fast_clock,
    open_world,
    python,
    request,
    wait_for,
)


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, fast_clock()) as world:
        yield world


class Wire:
    """Takes the place of the network below a boto3 client."""

    def __init__(self, world: World, client: Any) -> None:
        self._world = world
        self._shapes = client.meta.service_model
        client.meta.events.register("before-send.sagemaker", self.send)

    def send(self, request: Any, **_: Any) -> AWSResponse:
        operation = request.headers["X-Amz-Target"].decode().removeprefix("SageMaker.")
        try:
            result = self._world.twin.call(operation, json.loads(request.body), CALLER)
        except AwsError as error:
            return _response(request, error.status, {"__type": error.code, "message": error.message})
        self._check(operation, result)
        return _response(request, 200, result)

    def _check(self, operation: str, result: dict[str, Any]) -> None:
        """Required members, types, enums and patterns; nothing that the model does not know."""
        shape: StructureShape | None = self._shapes.operation_model(operation).output_shape
        if shape is None:
            assert result == {}
        else:
            assert _names(checked(shape, result)) == _names(result)


def _names(value: Any) -> Any:
    """The structure without its values."""
    if isinstance(value, dict):
        return {name: _names(inner) for name, inner in value.items()}
    return [_names(inner) for inner in value] if isinstance(value, list) else None


def _response(request: Any, status: int, body: dict[str, Any]) -> AWSResponse:
    headers: Any = {"content-type": "application/x-amz-json-1.1"}
    response: Any = AWSResponse(request.url, status, headers, None)
    response._content = json.dumps(body).encode()
    answer: AWSResponse = response
    return answer


@pytest.fixture
def client(world: World) -> Any:
    made = boto3.client(
        "sagemaker",
        region_name=REGION,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"total_max_attempts": 1}),
    )
    Wire(world, made)
    return made


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


FULL = {
    "HyperParameters": {"epochs": "3"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "ContentType": "text/csv",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": f"s3://{BUCKET}/data",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ],
    "VpcConfig": {"SecurityGroupIds": ["sg-0123"], "Subnets": ["subnet-0123"]},
    "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/ckpt", "LocalPath": "/opt/ml/checkpoints"},
    "EnableNetworkIsolation": True,
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 200},
    "Environment": {"A": "b"},
    "RetryStrategy": {"MaximumRetryAttempts": 1},
    "Tags": [{"Key": "trainmaster:job", "Value": "01J"}],
}


def test_a_training_plan_from_search_to_list(world: World, client: Any):
    question = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "DurationHours": 48}
    soon = datetime.now(UTC) + timedelta(days=3)
    found = client.search_training_plan_offerings(
        **question, TargetResources=["training-job"], StartTimeAfter=soon
    )["TrainingPlanOfferings"]
    arn = client.create_training_plan(
        TrainingPlanName="summer", TrainingPlanOfferingId=found[0]["TrainingPlanOfferingId"]
    )["TrainingPlanArn"]

    shown = client.describe_training_plan(TrainingPlanName=arn)

    assert arn == f"arn:aws:sagemaker:{REGION}:{CALLER.account_id}:training-plan/summer"
    assert shown["StartTime"] == found[0]["ReservedCapacityOfferings"][0]["StartTime"] > soon
    assert (shown["UpfrontFee"], shown["CurrencyCode"]) == (found[0]["UpfrontFee"], "USD")
    assert [part["Status"] for part in shown["ReservedCapacitySummaries"]] == ["Scheduled"] * 2
    [summary] = client.list_training_plans()["TrainingPlanSummaries"]
    assert summary.items() <= shown.items()
    with pytest.raises(client.exceptions.ResourceNotFound):
        client.describe_training_plan(TrainingPlanName="autumn")


def test_a_job_from_create_to_delete(world: World, client: Any):
    world.store.write(BUCKET, "data/a.csv", b"1")
    arn = client.create_training_job(**(request("job") | FULL))["TrainingJobArn"]
    assert arn == f"arn:aws:sagemaker:{REGION}:{CALLER.account_id}:training-job/job"

    client.get_waiter("training_job_completed_or_stopped").wait(
        TrainingJobName="job", WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000}
    )
    shown = client.describe_training_job(TrainingJobName="job")

    asked = request("job") | FULL
    for name in set(asked) - {"Tags", "OutputDataConfig"}:
        assert shown[name] == asked[name], name
    assert shown["OutputDataConfig"] == {"KmsKeyId": "", "S3OutputPath": f"s3://{BUCKET}/output"}
    assert "Tags" not in shown
    assert isinstance(shown["CreationTime"], datetime)
    assert shown["TrainingEndTime"] >= shown["TrainingStartTime"] >= shown["CreationTime"]
    assert client.list_tags(ResourceArn=arn)["Tags"] == FULL["Tags"]
    client.delete_training_job(TrainingJobName="job")
    assert client.list_training_jobs()["TrainingJobSummaries"] == []


def test_a_description_has_the_shape_of_the_model_at_every_step(world: World, client: Any):
    seen = set()
    client.create_training_job(**request("job", python("import time; time.sleep(0.3)")))

    def is_completed() -> bool:
        shown = client.describe_training_job(TrainingJobName="job")
        seen.add(shown["SecondaryStatus"])
        return bool(shown["TrainingJobStatus"] == "Completed")

    wait_for(is_completed, "job completes")

    assert {"Training", "Completed"} <= seen


def test_a_waiter_sees_a_failed_job(world: World, client: Any):
    client.create_training_job(**request("job", ["false"]))

    with pytest.raises(WaiterError):
        client.get_waiter("training_job_completed_or_stopped").wait(
            TrainingJobName="job", WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000}
        )


def test_25_jobs_are_listed_in_pages_of_10(world: World, client: Any):
    names = [f"job-{number}" for number in range(25)]
    for name in names:
        client.create_training_job(**request(name))

    pages = list(client.get_paginator("list_training_jobs").paginate(CreationTimeAfter=hour_ago()))

    assert [len(page["TrainingJobSummaries"]) for page in pages] == [10, 10, 5]
    listed = [one["TrainingJobName"] for page in pages for one in page["TrainingJobSummaries"]]
    assert sorted(listed) == sorted(names)


def test_a_simulation_reads_the_training_jobs_of_an_account(world: World, client: Any):
    names = [f"job-{number}" for number in range(12)]
    for name in names:
        client.create_training_job(**request(name), Tags=[{"Key": "team", "Value": "vision"}])
    for name in names:
        client.get_waiter("training_job_completed_or_stopped").wait(
            TrainingJobName=name, WaiterConfig={"Delay": 0.01, "MaxAttempts": 1000}
        )
    now = datetime.now(UTC)
    period = Period(since=now - timedelta(hours=1), until=now + timedelta(hours=1))
    how = SageMakerReading(team_tag="team", pause=lambda _: None)

    found = history_from_sagemaker(client, period, how)

    assert sorted(job.name for job in found.jobs) == sorted(names)
    for job in found.jobs:
        shown = client.describe_training_job(TrainingJobName=job.name)
        (attempt,) = job.attempts
        assert (job.team, job.end) == ("vision", "completed")
        assert abs(attempt.started_at - shown["TrainingStartTime"]) < timedelta(milliseconds=1)
        assert attempt.ended_at is not None
        assert timedelta() <= job.trains_for <= attempt.ended_at - attempt.started_at


def hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


def test_stop_goes_from_stopping_to_stopped(world: World, client: Any):
    client.create_training_job(**request("job", ["sleep", "60"]))
    client.stop_training_job(TrainingJobName="job")
    assert client.describe_training_job(TrainingJobName="job")["TrainingJobStatus"] == "Stopping"

    world.finished("job")
    assert client.describe_training_job(TrainingJobName="job")["TrainingJobStatus"] == "Stopped"
    with pytest.raises(ClientError) as error:
        client.stop_training_job(TrainingJobName="job")
    assert code(error) == "ValidationException"


def test_errors_have_the_codes_that_boto3_knows(world: World, client: Any):
    client.create_training_job(**request("job"))
    with pytest.raises(client.exceptions.ResourceInUse):
        client.create_training_job(**request("job"))
    with pytest.raises(client.exceptions.ResourceInUse):
        client.delete_training_job(TrainingJobName="job")
    with pytest.raises(ClientError, match="Requested resource not found") as error:
        client.describe_training_job(TrainingJobName="none")
    assert code(error) == "ValidationException"
    world.finished("job")


def test_a_profiler_can_be_changed_while_the_job_runs(world: World, client: Any):
    client.create_training_job(**request("job", ["sleep", "60"]))
    client.update_training_job(TrainingJobName="job", ProfilerConfig={"DisableProfiler": True})

    shown = client.describe_training_job(TrainingJobName="job")
    assert shown["ProfilerConfig"] == {"DisableProfiler": True}
    with pytest.raises(ClientError):
        client.update_training_job(TrainingJobName="job", ResourceConfig={"KeepAlivePeriodInSeconds": 0})


def test_tags_travel_both_ways(world: World, client: Any):
    arn = client.create_training_job(**request("job"))["TrainingJobArn"]
    client.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}])
    client.delete_tags(ResourceArn=arn, TagKeys=["a"])

    assert client.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": ""}]
    world.finished("job")
