"""What the gateway answers by itself, takes from the queue and passes on, seen by plain boto3."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from trainmaster_client.gateway.gateway_files import status

from tests.integration.client.fake_api import REGION, Scripted, problem, view
from tests.integration.client.gateway_world import GatewayWorld, running_gateway
from tests.unit.client.tuning.requests import request

ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/"
ROLE = {"RoleArn": "arn:aws:iam::123456789012:role/training"}


@pytest.fixture(scope="module")
def running() -> Iterator[GatewayWorld]:
    with patch("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0), running_gateway() as world:
        yield world


@pytest.fixture
def world(running: GatewayWorld) -> GatewayWorld:
    running.api.forget()
    running.sagemaker.forget()
    return running


def posted(world: GatewayWorld, operation: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """As a client that is not botocore, which would refuse such a body itself."""
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": operation}
    request = AWSRequest("POST", f"{world.url}/", data=body, headers=headers)
    answer = URLLib3Session().send(request.prepare())
    return answer.status_code, json.loads(answer.content)


def forget_the_list(world: GatewayWorld) -> None:
    """A stop of the caller's own makes the gateway ask for the queue's jobs again."""
    posted(world, "SageMaker.StopTrainingJob", b'{"TrainingJobName": "of-another"}')
    world.sagemaker.calls.clear()


def code(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    return str(raised.value.response["Error"]["Code"])


def test_what_is_not_the_queues_arrives_byte_by_byte_and_its_answer_as_sagemaker_gave_it(
    world: GatewayWorld,
) -> None:
    world.sagemaker.answers["ListModels"] = lambda _: {"Models": [], "NextToken": "x" * 300_000}
    body = b'{ "MaxResults":1,\n"AMemberOfTomorrow" : [1.50] }'
    assert posted(world, "SageMaker.ListModels", body) == (200, {"Models": [], "NextToken": "x" * 300_000})
    assert world.sagemaker.bodies == [body]


def test_sagemakers_own_request_id_and_error_are_passed_on(world: GatewayWorld) -> None:
    with pytest.raises(ClientError) as raised:
        world.client().describe_model(ModelName="none")
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert raised.value.response["ResponseMetadata"]["RequestId"] == "sagemakers-own"


@pytest.mark.parametrize(
    ("operation", "body", "code_"),
    [
        ("SageMaker.CreateTrainingJob", b"not json", "SerializationException"),
        ("SageMaker.CreateTrainingJob", b"[]", "SerializationException"),
        ("SageMaker.CreateTrainingJob", b"{}", "ValidationException"),
        ("SageMaker.DescribeTrainingJob", b'{"TrainingJobName": 3}', "ValidationException"),
        ("DynamoDB_20120810.ListTables", b"{}", "UnknownOperationException"),
        ("", b"{}", "UnknownOperationException"),
    ],
)
def test_a_body_or_operation_that_is_none_is_refused_as_aws_does(
    operation: str, body: bytes, code_: str, world: GatewayWorld
) -> None:
    answer = posted(world, operation, body)
    assert (answer[0], answer[1]["__type"]) == (400, code_)
    assert (world.api.received, world.sagemaker.calls) == ([], [])


def test_a_body_that_is_too_large_is_refused(world: GatewayWorld) -> None:
    with patch("trainmaster_client.gateway.web_app.LARGEST_BODY_BYTES", 10):
        assert posted(world, "SageMaker.ListModels", b'{"MaxResults": 1}')[0] == 413


def test_a_queue_that_gives_no_answer_is_unavailable_and_never_bypassed(world: GatewayWorld) -> None:
    world.api.script("POST", "/add-job", Scripted(status=500, document={"title": "Broken"}))
    create = world.client().create_training_job
    request = {
        "TrainingJobName": "lost",
        **ROLE,
        "OutputDataConfig": {"S3OutputPath": "s3://b/o"},
        "ResourceConfig": {"VolumeSizeInGB": 1},
        "StoppingCondition": {},
    }
    assert code(create, **request) == "InternalFailure"
    assert world.sagemaker.calls == []


def test_a_job_that_waits_has_nothing_to_update_and_one_that_runs_is_updated_under_its_attempts_name(
    world: GatewayWorld,
) -> None:
    update = world.client().update_training_job
    world.api.script("GET", "/jobs/waits", Scripted(document=view("waits")))
    assert code(update, TrainingJobName="waits", RemoteDebugConfig={"EnableRemoteDebug": True}) == (
        "ValidationException"
    )
    assert world.sagemaker.calls == []
    running = view("runs", state="running", training_job_name="runs-r1")
    world.api.script("GET", "/jobs/runs", Scripted(document=running))
    world.sagemaker.answers["UpdateTrainingJob"] = lambda _: {"TrainingJobArn": ARN + "runs-r1"}
    update(TrainingJobName="runs", RemoteDebugConfig={"EnableRemoteDebug": True})
    assert world.sagemaker.calls == [
        (
            "UpdateTrainingJob",
            {"TrainingJobName": "runs-r1", "RemoteDebugConfig": {"EnableRemoteDebug": True}},
        )
    ]


def test_a_list_has_unfinished_jobs_once_and_an_ended_one_as_it_is_described(world: GatewayWorld) -> None:
    noon = 1795262400.0  # 2026-11-21T12:00:00Z

    def entry(name: str, status_: str, at: float) -> dict[str, Any]:
        times = {"CreationTime": at, "LastModifiedTime": at}
        return {"TrainingJobName": name, "TrainingJobArn": ARN + name, "TrainingJobStatus": status_, **times}

    world.sagemaker.answers["ListTrainingJobs"] = lambda _: {
        "TrainingJobSummaries": [
            entry("came-back", "Stopped", noon + 10),
            entry("preempted", "Stopped", noon + 5),
            entry("of-nobody", "Stopped", noon),
        ]
    }
    waits = view("preempted", state="preempted", submitted_at="2026-11-21T12:00:05Z")
    world.api.script("GET", "/jobs", Scripted(document={"jobs": [waits], "next_token": None}))
    world.api.script("GET", "/jobs/preempted", Scripted(document={**waits, "request": ROLE}))
    done = view("came-back", state="completed", submitted_at="2026-11-21T12:00:10Z")
    world.api.script("GET", "/jobs/came-back", Scripted(document={**done, "request": ROLE}))
    forget_the_list(world)
    found = world.client().list_training_jobs()["TrainingJobSummaries"]
    assert [(one["TrainingJobName"], one["TrainingJobStatus"]) for one in found] == [
        ("came-back", "Completed"),
        ("preempted", "InProgress"),
        ("of-nobody", "Stopped"),
    ]
    assert found[1]["TrainingJobArn"] == f"{ARN}preempted"


def test_a_list_that_the_queue_refuses_is_refused_and_hides_no_job_that_waits(world: GatewayWorld) -> None:
    forget_the_list(world)
    world.sagemaker.answers["ListTrainingJobs"] = lambda _: {"TrainingJobSummaries": []}
    world.api.script("GET", "/jobs", problem(429, "Too many requests", "reads"))
    status_, answer = posted(world, "SageMaker.ListTrainingJobs", b"{}")
    assert (status_, answer["__type"]) == (400, "ThrottlingException")


def test_a_tuning_job_that_cannot_be_queued_is_refused_and_starts_nothing(world: GatewayWorld) -> None:
    status_, answer = posted(world, "SageMaker.CreateHyperParameterTuningJob", b"{}")
    assert (status_, answer["__type"]) == (400, "ValidationException")
    assert "HyperParameterTuningJobConfig" in answer["message"]
    with pytest.raises(ClientError, match="Strategy Hyperband"):
        world.client().create_hyper_parameter_tuning_job(**request(strategy="Hyperband"))
    assert (world.sagemaker.calls, world.api.calls()) == ([], [])


def test_what_it_did_is_counted_by_operation_for_who_has_the_token(world: GatewayWorld) -> None:
    world.sagemaker.answers["ListClusters"] = lambda _: {"ClusterSummaries": []}
    world.client().list_clusters()
    said = status(world.url)
    assert said is not None
    assert said["operations"]["ListClusters"]["calls"] == 1
    assert (said["region"], said["api_url"]) == (REGION, world.api.url)
    assert status(f"{world.url}x") is None
