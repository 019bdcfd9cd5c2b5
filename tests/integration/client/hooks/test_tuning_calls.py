"""A tuning job under the hooks: boto3 outside, a queue that remembers, and S3 beside it."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from trainmaster_client.hook import install
from trainmaster_client.hooks import tuning_job_calls
from trainmaster_client.hooks.botocore_events import PlainClients, answered, plain_client
from trainmaster_client.tuning.tuning_requests import tuning_job_of

from tests.builders import NOON
from tests.e2e.plane import eventually
from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Received,
    Scripted,
    running_fake_api,
    view,
)
from tests.unit.client.tuning.requests import choices, request

NAME = "HyperParameterTuningJobName"
STUDY = "out/tune/trainmaster-study.json"
GRID: dict[str, Any] = {
    "ParameterRanges": choices(a=["1", "2"], b=["x", "y"]),
    "ResourceLimits": {"MaxParallelTrainingJobs": 2},
}
Document = dict[str, Any]


@dataclass(slots=True)
class Queue:
    """What the API answers, kept; a job ends when it is told to."""

    jobs: dict[str, Document] = field(default_factory=dict)
    requests: dict[str, Document] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    violation: str = ""

    def answer(self, received: Received) -> Scripted:
        if received.path == "/add-job":
            return self._add(json.loads(received.body), is_dry="dry_run" in received.query)
        if received.path == "/jobs":
            state = received.query.get("state", [None])[0]
            found = [one for one in self.jobs.values() if one["state"] == (state or "pending")]
            return Scripted(document={"jobs": found, "next_token": None})
        name = received.path.rpartition("/")[2]
        if name not in self.jobs:
            return Scripted(status=404, document={"title": "Not found", "detail": "no such job"})
        if received.method == "DELETE":
            self.end(name, "stopped")
        return Scripted(document={**self.jobs[name], "request": self.requests[name]})

    def _add(self, asked: Document, *, is_dry: bool) -> Scripted:
        if is_dry:
            violations = [{"field": "Tags", "message": self.violation}] if self.violation else []
            return Scripted(document={"valid": not violations, "violations": violations})
        name = asked["TrainingJobName"]
        self.added.append(name)
        self.requests[name] = asked
        self.jobs.setdefault(name, view(name))
        return Scripted(status=201, document={"job": self.jobs[name], "warnings": []})

    def end(self, name: str, state: str) -> None:
        arn = f"arn:aws:sagemaker:{REGION}:123456789012:training-job/{name}" if state != "stopped" else None
        attempt = {"attempt": 0, "training_job_name": name, "training_job_arn": arn}
        self.jobs[name] = view(name, state=state, attempts=[attempt])


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    api: FakeApi
    queue: Queue
    session: boto3.Session

    losses: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    _clients: list[Any] = field(default_factory=list)

    @property
    def sagemaker(self) -> Any:
        if not self._clients:
            self._clients.append(self.session.client("sagemaker"))
        return self._clients[0]

    def study(self) -> Document:
        answer = self.session.client("s3").get_object(Bucket="bucket", Key=STUDY)
        found: Document = json.loads(answer["Body"].read())
        return found

    def end(self, number: int, loss: float | None, *, state: str = "completed") -> None:
        """A trial by its number, with what SageMaker then says of its training job."""
        name = next(one for one in self.queue.jobs if f"-{number:03d}-" in one)
        self.losses[name] = (state, loss)
        self.queue.end(name, state)

    def described(self, params: Document, **_: object) -> Any:
        """SageMaker's own DescribeTrainingJob, before it leaves."""
        name = json.loads(params["body"])["TrainingJobName"]
        if name not in self.losses:
            return None
        state, loss = self.losses[name]
        metrics = [] if loss is None else [{"MetricName": "loss", "Value": loss}]
        status = state.capitalize()
        return answered(
            {
                "TrainingJobName": name,
                "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:123456789012:training-job/{name}",
                "TrainingJobStatus": status,
                "SecondaryStatus": status,
                "TrainingStartTime": NOON,
                "TrainingEndTime": NOON,
                "FinalMetricDataList": metrics,
            }
        )

    def eventually(self, accept: Callable[[Document], bool], name: str = "tune") -> Document:
        return eventually(
            lambda: self.sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name),
            accept,
        )

    def trials(self, **options: Any) -> Document:
        found: Document = self.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(
            HyperParameterTuningJobName="tune", **options
        )
        return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(tuning_job_calls, "FIRST_POLL_SECONDS", 0.01)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    with running_fake_api() as api, mock_aws():
        session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        session.client("s3").create_bucket(
            Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        found = World(api=api, queue=Queue(), session=session)
        session.events.register("before-call.sagemaker.DescribeTrainingJob", found.described)
        monkeypatch.setattr(api, "answer", found.queue.answer)
        install(session, api_url=api.url)
        yield found
        finish(found)  # else its thread goes on into the next test


def finish(world: World) -> None:
    tuned = {tuning_job_of(name) for name in world.queue.jobs}
    for name in filter(None, tuned):
        with suppress(ClientError):  # it has ended
            world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
        world.eventually(lambda seen: "HyperParameterTuningEndTime" in seen, name)


def test_a_tuning_job_runs_its_trials_as_jobs_of_the_queue_and_is_described_as_sagemaker_would(
    world: World,
) -> None:
    arn = world.sagemaker.create_hyper_parameter_tuning_job(**request(strategy="Grid", **GRID))
    assert (
        arn[f"{NAME[:-4]}Arn"] == f"arn:aws:sagemaker:{REGION}:123456789012:hyper-parameter-tuning-job/tune"
    )
    assert len(world.queue.added) == 2
    for number, loss in ((1, 3.0), (2, 1.0), (3, None), (4, 2.0)):
        eventually(lambda: len(world.queue.jobs), lambda found, number=number: found >= number)  # type: ignore[misc]
        world.end(number, loss, state="failed" if loss is None else "completed")
    found = world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Completed")
    assert sorted(world.queue.added) == sorted(set(world.queue.added))
    assert found["TrainingJobStatusCounters"] == {
        "Completed": 3,
        "InProgress": 0,
        "RetryableError": 0,
        "NonRetryableError": 1,
        "Stopped": 0,
    }
    assert found["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 0, "Failed": 1}
    best = found["BestTrainingJob"]
    assert best["FinalHyperParameterTuningJobObjectiveMetric"] == {
        "Type": "Minimize",
        "MetricName": "loss",
        "Value": 1.0,
    }
    assert "-002-" in best["TrainingJobName"]
    assert best["TunedHyperParameters"] == {"a": "1", "b": "y"}
    limits = found["HyperParameterTuningJobConfig"]["ResourceLimits"]
    assert limits == {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2}

    by_value = world.trials(SortBy="FinalObjectiveMetricValue", SortOrder="Descending", MaxResults=2)
    numbers = [one["TrainingJobName"].split("-")[1] for one in by_value["TrainingJobSummaries"]]
    assert numbers == ["001", "004"]
    rest = world.trials(
        SortBy="FinalObjectiveMetricValue", SortOrder="Descending", NextToken=by_value["NextToken"]
    )
    assert ["-002-" in one["TrainingJobName"] for one in rest["TrainingJobSummaries"]] == [True]
    failed = world.trials(StatusEquals="Failed")["TrainingJobSummaries"]
    assert [(one["TrainingJobStatus"], one["ObjectiveStatus"]) for one in failed] == [("Failed", "Failed")]


def test_the_same_request_again_is_the_same_tuning_job_and_another_one_under_its_name_is_refused(
    world: World,
) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    names = set(world.queue.jobs)
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    assert set(world.queue.jobs) == names
    with pytest.raises(ClientError) as refused:
        world.sagemaker.create_hyper_parameter_tuning_job(**request(RandomSeed=5))
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"


def test_trials_that_the_policy_would_refuse_are_refused_when_the_tuning_job_is_created(world: World) -> None:
    world.queue.violation = "no model_name"
    with pytest.raises(ClientError, match="Tags: no model_name") as refused:
        world.sagemaker.create_hyper_parameter_tuning_job(**request())
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert world.queue.added == []
    assert "Contents" not in world.session.client("s3").list_objects_v2(Bucket="bucket")


def test_stopping_cancels_what_waits_and_runs_and_starts_nothing_more(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    found = world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Stopped")
    assert found["TrainingJobStatusCounters"]["Stopped"] == 2
    assert {one["state"] for one in world.queue.jobs.values()} == {"stopped"}
    with pytest.raises(ClientError, match="has ended: Stopped"):
        world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")


def test_another_process_finds_the_study_by_the_name_of_its_first_trial(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    other = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    install(other, api_url=world.api.url)
    client = other.client("sagemaker")
    found = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    assert found["TrainingJobStatusCounters"]["InProgress"] == 2
    tags = client.list_tags(ResourceArn=found["HyperParameterTuningJobArn"])["Tags"]
    assert tags == request()["Tags"]


def test_a_warm_start_begins_with_what_the_parents_found_in_the_same_space(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request(strategy="Grid", **GRID))
    world.end(1, 3.0)
    world.end(2, None, state="failed")
    world.eventually(lambda seen: seen["TrainingJobStatusCounters"]["Completed"] == 1)
    parents = [{"HyperParameterTuningJobName": "tune"}]
    warm = {"ParentHyperParameterTuningJobs": parents, "WarmStartType": "TransferLearning"}
    limits = {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1}
    child = request("child", **GRID | {"ResourceLimits": limits})
    world.sagemaker.create_hyper_parameter_tuning_job(**child, WarmStartConfig=warm)
    stored = world.session.client("s3").get_object(Bucket="bucket", Key="out/child/trainmaster-study.json")
    assert json.loads(stored["Body"].read())["inherited"] == [
        {"parameters": {"a": "1", "b": "x"}, "value": 3.0}
    ]


def listed(world: World, **options: Any) -> list[str]:
    """Names, page by page."""
    names: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = world.sagemaker.list_hyper_parameter_tuning_jobs(**options, **token)
        names += [one["HyperParameterTuningJobName"] for one in page["HyperParameterTuningJobSummaries"]]
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else {}
        if not token:
            return names


def test_studies_are_listed_among_sagemakers_own_tuning_jobs(world: World) -> None:
    theirs = [
        {
            "HyperParameterTuningJobName": name,
            "HyperParameterTuningJobStatus": "Completed",
            "Strategy": "Random",
            "CreationTime": NOON,
            "LastModifiedTime": NOON,
        }
        for name in ("also", "other", "zoo")
    ]

    def own(params: Document, **_: object) -> Any:
        """Two on a page."""
        asked = json.loads(params["body"])
        begin = int(asked.get("NextToken", 0))
        more = {"NextToken": str(begin + 2)} if begin + 2 < len(theirs) else {}
        return answered({"HyperParameterTuningJobSummaries": theirs[begin : begin + 2], **more})

    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    client, s3 = plain_client(world.session, "sagemaker"), world.session.client("s3")
    client.meta.events.register("before-call.sagemaker.ListHyperParameterTuningJobs", own)
    with patch.object(PlainClients, "of", lambda _, service, __: client if service == "sagemaker" else s3):
        assert listed(world, SortBy="Name", SortOrder="Ascending", MaxResults=2) == [
            "also",
            "other",
            "tune",
            "zoo",
        ]
        assert listed(world, SortBy="Name", SortOrder="Ascending", NameContains="tun")[-1:] == ["zoo"]
        assert "tune" in listed(world, StatusEquals="InProgress", MaxResults=1)
        assert "tune" not in listed(world, StatusEquals="Failed")
        finish(world)
