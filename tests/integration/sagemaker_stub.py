"""SageMaker's training API as far as the plane uses it, answering inside botocore: no network, no processes.

The twin is the faithful one; this one stands still unless a test moves it, which fault tests need.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ReadTimeoutError

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"
TERMINAL = {"Completed", "Failed", "Stopped"}


class _Http:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code
        self.headers: dict[str, str] = {}


@dataclass(slots=True)
class TrainingJob:
    request: dict[str, Any]
    created: datetime
    status: str = "InProgress"
    secondary: str = "Starting"
    reason: str | None = None
    training_since: datetime | None = None
    ended: datetime | None = None
    stops: int = 0


@dataclass(slots=True)
class SageMakerStub:
    clock: Callable[[], datetime]
    jobs: dict[str, TrainingJob] = field(default_factory=dict)
    creates: list[str] = field(default_factory=list)
    """Names of accepted CreateTrainingJob calls, in order."""
    refuse: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """(error code, HTTP status) for the next calls of an operation."""
    intercept: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    """Answers the next call of an operation instead of us."""
    lose_answers: int = 0
    """The next creates happen, but nobody hears of it."""

    def answer(self, model: Any, params: dict[str, Any], **_: Any) -> tuple[_Http, dict[str, Any]]:
        body = json.loads(params["body"])
        if self.refuse.get(model.name):
            code, status = self.refuse[model.name].pop(0)
            return error(code, f"{model.name} was told to fail", status)
        own: Callable[[dict[str, Any]], tuple[_Http, dict[str, Any]]] = getattr(self, f"_{model.name}")
        answer: tuple[_Http, dict[str, Any]] = self.intercept.pop(model.name, own)(body)
        return answer

    def _CreateTrainingJob(self, body: dict[str, Any]) -> tuple[_Http, dict[str, Any]]:
        name = body["TrainingJobName"]
        if name in self.jobs:
            return error("ResourceInUse", "Training job names must be unique")
        self.jobs[name] = TrainingJob(request=body, created=self.clock())
        self.creates.append(name)
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="sagemaker")
        return _ok({"TrainingJobArn": ARN + name})

    def _DescribeTrainingJob(self, body: dict[str, Any]) -> tuple[_Http, dict[str, Any]]:
        job = self.jobs.get(body["TrainingJobName"])
        if job is None:
            return error("ValidationException", "Requested resource not found.")
        transitions = [{"Status": "Training", "StartTime": job.training_since}] if job.training_since else []
        described = {
            "TrainingJobName": body["TrainingJobName"],
            "TrainingJobArn": ARN + body["TrainingJobName"],
            "TrainingJobStatus": job.status,
            "SecondaryStatus": job.secondary,
            "SecondaryStatusTransitions": transitions,
            "LastModifiedTime": self.clock(),
        }
        if job.ended:
            described["TrainingEndTime"] = job.ended
        if job.reason:
            described["FailureReason"] = job.reason
        return _ok(described)

    def _ListTags(self, body: dict[str, Any]) -> tuple[_Http, dict[str, Any]]:
        return _ok({"Tags": self.jobs[body["ResourceArn"].removeprefix(ARN)].request.get("Tags", [])})

    def _StopTrainingJob(self, body: dict[str, Any]) -> tuple[_Http, dict[str, Any]]:
        job = self.jobs.get(body["TrainingJobName"])
        if job is None or job.status in TERMINAL:
            return error("ValidationException", "The request was rejected because the training job is over.")
        job.status = job.secondary = "Stopping"
        job.stops += 1
        return _ok({})

    # ---- what a test does to a job

    def train(self, name: str) -> None:
        job = self.jobs[name]
        job.secondary, job.training_since = "Training", self.clock()

    def end(self, name: str, status: str, secondary: str | None = None, reason: str | None = None) -> None:
        job = self.jobs[name]
        job.status, job.secondary, job.reason, job.ended = status, secondary or status, reason, self.clock()

    def live(self) -> dict[str, TrainingJob]:
        return {name: job for name, job in self.jobs.items() if job.status not in TERMINAL}


def _ok(parsed: dict[str, Any]) -> tuple[_Http, dict[str, Any]]:
    return _Http(200), {**parsed, "ResponseMetadata": {"HTTPStatusCode": 200}}


def error(code: str, message: str, status: int = 400) -> tuple[_Http, dict[str, Any]]:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return _Http(status), answer
