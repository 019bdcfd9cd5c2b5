"""What a tuning job meets: a queue that remembers, SageMaker's word on training jobs, and S3."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from trainmaster_client.hook import install
from trainmaster_client.hooks import tuning_job_calls
from trainmaster_client.hooks.botocore_events import answered
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
    view,
)
from tests.unit.client.tuning.requests import choices

NAME = "HyperParameterTuningJobName"
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
    rule: str = ""
    keys: list[str | None] = field(default_factory=list)
    """Of the submissions."""

    def answer(self, received: Received) -> Scripted:
        if received.path == "/add-job":
            is_dry = "dry_run" in received.query
            self.keys += [] if is_dry else [received.headers.get("idempotency-key")]
            return self._add(json.loads(received.body), is_dry=is_dry)
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
            violation = {"field": "Tags", "message": self.violation, "rule": self.rule or None}
            violations = [violation] if self.violation else []
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
def world(api: FakeApi, aws_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(tuning_job_calls, "FIRST_POLL_SECONDS", 0.01)
    monkeypatch.setattr("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0)
    with mock_aws(config={"core": {"mock_credentials": False}}):
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
    for thread in threading.enumerate():
        if thread.name.startswith("trainmaster-tuning-"):
            thread.join()
