"""The hooks under boto3 itself: plain clients, the fake API, and AWS answered just before the network."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from trainmaster_client.hook import install

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    problem,
    running_fake_api,
    view,
)
from tests.integration.client.fake_aws import FakeAws

REQUEST: dict[str, Any] = {
    "TrainingJobName": "job1",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "Tags": [{"Key": "priority", "Value": "3"}],
}
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job1"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def running_api() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        yield api


@pytest.fixture
def api(running_api: FakeApi) -> FakeApi:
    running_api.forget()
    return running_api


@pytest.fixture
def aws() -> FakeAws:
    return FakeAws()


@pytest.fixture
def boto_session(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    monkeypatch.setattr("trainmaster_client.api.FIRST_PAUSE_SECONDS", 0)
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    aws.attach(session)
    return session


@pytest.fixture
def sagemaker(api: FakeApi, boto_session: boto3.Session) -> Any:
    install(boto_session, api_url=api.url)
    return boto_session.client("sagemaker")


def known(api: FakeApi, **fields: Any) -> None:
    api.script("GET", "/jobs/job1", Scripted(document={**view(**fields), "request": REQUEST}))


def attempt(number: int, name: str, *, is_over: bool = False) -> dict[str, Any]:
    arn = f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}"
    ended = "2026-11-21T02:00:00Z" if is_over else None
    return {"attempt": number, "training_job_name": name, "training_job_arn": arn, "ended_at": ended}


def described(
    name: str, status: str = "InProgress", secondary: str = "Training", **more: Any
) -> dict[str, Any]:
    """As SageMaker answers on the wire."""
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}",
        "TrainingJobStatus": status,
        "SecondaryStatus": secondary,
        "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/out/{name}/output/model.tar.gz"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "ResourceConfig": REQUEST["ResourceConfig"],
        "CreationTime": NOON,
        **more,
    }


def test_creating_submits_the_request_as_it_is_and_answers_with_the_arn_to_come(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    answer = sagemaker.create_training_job(**REQUEST)
    assert json.loads(api.received[0].body) == REQUEST
    assert answer["TrainingJobArn"] == ARN
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert aws.calls == []


@pytest.mark.parametrize(
    ("status", "code", "title"),
    [
        pytest.param(400, "ValidationException", "Not a valid request", id="400"),
        pytest.param(403, "AccessDeniedException", "Not your team", id="403"),
        pytest.param(409, "ResourceInUse", "The name is taken", id="409"),
        pytest.param(422, "ValidationException", "Not allowed by the policy", id="422"),
        pytest.param(429, "ThrottlingException", "Too many submissions", id="429"),
        pytest.param(500, "InternalFailure", "Our mistake", id="500"),
    ],
)
def test_a_refusal_is_what_callers_of_boto3_catch_with_every_field_in_its_message(
    status: int, code: str, title: str, sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    errors = [
        {"field": "ResourceConfig.InstanceCount", "message": "is 9", "hint": "at most 2"},
        {"field": "Tags", "message": "no model_name", "hint": "add it"},
    ]
    api.script("POST", "/add-job", problem(status, title, "2 problems", *errors))
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**REQUEST)
    assert caught.value.response["Error"]["Code"] == code
    for part in (title, "ResourceConfig.InstanceCount: is 9; at most 2", "Tags: no model_name; add it"):
        assert part in str(caught.value)
    assert aws.calls == []


def test_a_taken_name_is_the_clients_own_exception(sagemaker: Any, api: FakeApi) -> None:
    api.script("POST", "/add-job", problem(409, "The name is taken", "it is running"))
    with pytest.raises(sagemaker.exceptions.ResourceInUse):
        sagemaker.create_training_job(**REQUEST)


def test_a_waiting_job_is_described_from_its_request_with_its_place_and_reason(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    known(api, history=history(("pending", 0, "")))
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Pending")
    assert answer["SecondaryStatusTransitions"] == [
        {
            "Status": "Pending",
            "StartTime": datetime(2026, 11, 21, 1, tzinfo=UTC),
            "StatusMessage": "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        }
    ]
    assert answer["TrainingJobArn"] == ARN
    assert answer["AlgorithmSpecification"] == REQUEST["AlgorithmSpecification"]
    assert "Tags" not in answer
    assert_is_a_description(answer, sagemaker)
    assert aws.calls == []


def test_a_job_that_came_back_is_described_over_both_attempts(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    steps = [("pending", 0, ""), ("starting", 0, ""), ("running", 0, ""), ("preempting", 0, "for job4")]
    steps += [("preempted", 1, "for job4"), ("starting", 1, ""), ("running", 1, "")]
    first = described(
        "job1",
        "Stopped",
        "Stopped",
        TrainingStartTime=NOON,
        TrainingEndTime=NOON + 60,
        TrainingTimeInSeconds=60,
        BillableTimeInSeconds=50,
        SecondaryStatusTransitions=[{"Status": "Stopped", "StartTime": NOON, "EndTime": NOON + 60}],
    )
    second = described(
        "job1-r1-abcdef",
        TrainingStartTime=NOON + 90,
        SecondaryStatusTransitions=[{"Status": "Training", "StartTime": NOON + 90}],
    )
    aws.answers["DescribeTrainingJob"] = lambda body: {"job1": first, "job1-r1-abcdef": second}[
        body["TrainingJobName"]
    ]
    attempts = [attempt(0, "job1", is_over=True), attempt(1, "job1-r1-abcdef")]
    known(
        api, state="running", history=history(*steps), attempts=attempts, training_job_name="job1-r1-abcdef"
    )
    answer = sagemaker.describe_training_job(TrainingJobName="job1")
    assert answer["TrainingJobName"] == "job1"
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == ("InProgress", "Training")
    assert [one["Status"] for one in answer["SecondaryStatusTransitions"]] == [
        "Pending",
        "Stopped",
        "Pending",
        "Training",
    ]
    assert answer["SecondaryStatusTransitions"][2]["StatusMessage"] == "for job4"
    assert answer["TrainingStartTime"] == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert "TrainingEndTime" not in answer
    assert (answer["TrainingTimeInSeconds"], answer["BillableTimeInSeconds"]) == (60, 50)
    assert (
        answer["ModelArtifacts"]["S3ModelArtifacts"] == "s3://bucket/out/job1-r1-abcdef/output/model.tar.gz"
    )
    assert_is_a_description(answer, sagemaker)

    sagemaker.describe_training_job(TrainingJobName="job1")
    assert [body["TrainingJobName"] for _, body in aws.calls] == ["job1", "job1-r1-abcdef", "job1-r1-abcdef"]


def test_the_name_of_a_later_attempt_goes_straight_to_sagemaker(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    api.script("GET", "/jobs/job1-r1-abcdef", Scripted(document=view("job1", state="running")))
    aws.answers["DescribeTrainingJob"] = lambda body: described(body["TrainingJobName"])
    answer = sagemaker.describe_training_job(TrainingJobName="job1-r1-abcdef")
    assert answer["TrainingJobName"] == "job1-r1-abcdef"
    assert len(aws.calls) == 1


def assert_is_a_description(answer: dict[str, Any], client: Any) -> None:
    """What botocore's own model says of DescribeTrainingJob's answer."""
    shape = client.meta.service_model.operation_model("DescribeTrainingJob").output_shape
    body = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
    assert set(body) <= set(shape.members)
    report = ParamValidator().validate(body, shape)
    assert not report.has_errors(), report.generate_report()
