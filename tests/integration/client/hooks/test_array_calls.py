"""Calls of SageMaker about an array, under boto3 itself: one training job to the caller."""

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client.hook import install

from tests.integration.client import fake_api
from tests.integration.client.array_answers import array_document, no_job, task_document
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, Scripted, view
from tests.integration.client.fake_aws import FakeAws

TAGS = [{"Key": "trainmaster:array", "Value": "0-3@2"}, {"Key": "team", "Value": "vision"}]
REQUEST = fake_api.REQUEST | {"TrainingJobName": "sweep", "Tags": TAGS}
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/sweep"


@pytest.fixture(scope="module")
def clouds() -> tuple[boto3.Session, FakeAws]:
    session, aws = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION), FakeAws()
    aws.attach(session)
    return session, aws


@pytest.fixture
def aws(clouds: tuple[boto3.Session, FakeAws]) -> FakeAws:
    clouds[1].forget()
    return clouds[1]


@pytest.fixture
def sagemaker(
    api: FakeApi, clouds: tuple[boto3.Session, FakeAws], aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr("trainmaster_client.jobs.queued_jobs.FRESH_SECONDS", 0.0)
    install(clouds[0], api_url=api.url)
    return clouds[0].client("sagemaker")


def known(api: FakeApi, **fields: Any) -> None:
    """An array that another process submitted; the request is asked of its first task."""
    task = {
        **REQUEST,
        "TrainingJobName": "sweep-0",
        "Tags": TAGS[1:],
        "Environment": {"A": "b", "TRAINMASTER_ARRAY_INDEX": "0"},
        "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints/0", "LocalPath": "/opt/ml/checkpoints"},
    }
    api.script("GET", "/jobs/sweep", no_job())
    api.script("GET", "/arrays/sweep", Scripted(document=array_document(**fields)))
    api.script("GET", "/arrays/sweep/tasks", Scripted(document={"tasks": [task_document(0)]}))
    api.script("GET", "/jobs/sweep-0", Scripted(document={**view("sweep-0"), "request": task}))


def test_creating_with_the_tag_answers_an_arn_of_the_arrays_name(sagemaker: Any, api: FakeApi) -> None:
    document = {"array": array_document(), "warnings": []}
    api.script("POST", "/add-job", Scripted(status=201, document=document))
    assert sagemaker.create_training_job(**REQUEST)["TrainingJobArn"] == ARN
    assert json.loads(api.received[0].body) == REQUEST
    api.script("GET", "/jobs/sweep", no_job())
    api.script("GET", "/arrays/sweep", Scripted(document=array_document()))
    described = sagemaker.describe_training_job(TrainingJobName="sweep")
    assert described["RoleArn"] == REQUEST["RoleArn"]  # of the request, without another question
    assert sagemaker.list_tags(ResourceArn=ARN)["Tags"] == TAGS[1:]
    assert "GET /jobs/sweep-0" not in api.calls()


@pytest.mark.parametrize(
    ("fields", "status", "secondary", "message"),
    [
        ({}, "InProgress", "Pending", "0 of 4 completed, 4 waiting"),
        ({"state": "held", "tasks": {"held": 4}}, "InProgress", "Pending", "0 of 4 completed, 4 held"),
        (
            {"state": "running", "tasks": {"completed": 1, "running": 2, "waiting": 1}, "at_most": 2},
            "InProgress",
            "Training",
            "1 of 4 completed, 2 running of at most 2, 1 waiting",
        ),
        (
            {"state": "running", "tasks": {"completed": 1, "waiting": 3}},
            "InProgress",
            "Pending",
            "1 of 4 completed, 3 waiting",
        ),
        ({"state": "completed", "tasks": {"completed": 4}}, "Completed", "Completed", "4 of 4 completed"),
        ({"state": "stopped", "tasks": {"stopped": 4}}, "Stopped", "Stopped", "0 of 4 completed, 4 stopped"),
    ],
)  # fmt: skip
def test_describe_tells_how_all_tasks_are(
    fields: dict[str, Any], status: str, secondary: str, message: str, sagemaker: Any, api: FakeApi
) -> None:
    known(api, **fields)
    answer = sagemaker.describe_training_job(TrainingJobName="sweep")
    assert (answer["TrainingJobStatus"], answer["SecondaryStatus"]) == (status, secondary)
    assert answer["SecondaryStatusTransitions"][-1]["StatusMessage"] == message
    assert (answer["TrainingJobName"], answer["TrainingJobArn"]) == ("sweep", ARN)
    assert answer["Environment"] == {"A": "b"}
    assert answer["CheckpointConfig"]["S3Uri"] == "s3://bucket/checkpoints"
    assert "FailureReason" not in answer


def test_describe_names_the_tasks_that_failed(sagemaker: Any, api: FakeApi) -> None:
    known(
        api,
        state="failed",
        tasks={"completed": 61, "failed": 3},
        failed="7,8,31",
        ended_at="2026-11-21T09:00:00Z",
    )
    answer = sagemaker.describe_training_job(TrainingJobName="sweep")
    assert answer["TrainingJobStatus"] == "Failed"
    assert answer["FailureReason"] == "3 of 64 tasks failed: 7, 8, 31"
    assert answer["TrainingEndTime"].hour == 9


def test_stop_cancels_the_whole(sagemaker: Any, api: FakeApi) -> None:
    known(api)
    api.script("DELETE", "/arrays/sweep", Scripted(status=202, document=array_document(state="running")))
    sagemaker.stop_training_job(TrainingJobName="sweep")
    assert api.calls()[-1] == "DELETE /arrays/sweep"


def test_stop_of_one_that_has_ended_is_refused_as_sagemaker_does(sagemaker: Any, api: FakeApi) -> None:
    known(api, state="completed", tasks={"completed": 4})
    api.script("DELETE", "/arrays/sweep", fake_api.problem(409, "Conflict", "sweep has completed"))
    with pytest.raises(ClientError, match="ValidationException"):
        sagemaker.stop_training_job(TrainingJobName="sweep")


def test_what_is_about_one_training_job_is_refused_with_a_hint(sagemaker: Any, api: FakeApi) -> None:
    known(api)
    with pytest.raises(ClientError, match=r"sweep is an array of jobs.*sweep-0"):
        sagemaker.add_tags(ResourceArn=ARN, Tags=[{"Key": "a", "Value": "b"}])
    with pytest.raises(ClientError, match="sweep is an array of jobs"):
        sagemaker.update_training_job(TrainingJobName="sweep", ProfilerConfig={"DisableProfiler": True})


def test_a_name_that_is_nobodys_goes_to_sagemaker_and_asks_for_no_array(
    sagemaker: Any, api: FakeApi, aws: FakeAws
) -> None:
    aws.answers["DescribeTrainingJob"] = lambda _: {"__type": "ValidationException", "message": "no such job"}
    with pytest.raises(ClientError, match="no such job"):
        sagemaker.describe_training_job(TrainingJobName="other")
    assert api.calls() == ["GET /jobs/other"]


def test_the_list_has_the_tasks_and_not_the_array(sagemaker: Any, api: FakeApi, aws: FakeAws) -> None:
    jobs = {"jobs": [view("sweep-0"), view("sweep-1")], "arrays": [array_document()], "next_token": None}
    api.script("GET", "/jobs", Scripted(document=jobs))
    aws.answers["ListTrainingJobs"] = lambda _: {"TrainingJobSummaries": []}
    known(api)
    names = [entry["TrainingJobName"] for entry in sagemaker.list_training_jobs()["TrainingJobSummaries"]]
    assert sorted(names) == ["sweep-0", "sweep-1"]
