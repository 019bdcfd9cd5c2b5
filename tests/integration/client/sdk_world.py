"""The SageMaker SDK v2 over the fake API, with AWS answered just before the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import boto3
import sagemaker.estimator
from sagemaker.session import Session
from trainmaster_client.jobs.queued_jobs import RecentlyUsed
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    running_fake_api,
    view,
)
from tests.integration.client.fake_aws import Document, FakeAws

ROLE = "arn:aws:iam::123456789012:role/training"
TELEMETRY = "sagemaker.telemetry.telemetry_logging._send_telemetry_request"
"""Patched out: to opt out by the SDK's own settings makes it read a schema for each value, a second a fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Made once for a module: the SDK takes half a second for a session."""

    api: FakeApi
    aws: FakeAws
    session: QueueTrainingJobSession

    def forget(self) -> None:
        self.api.forget()
        self.aws.forget()
        self.session._hooks.queued._known = RecentlyUsed()
        self.session._hooks.queued._requests = RecentlyUsed()


@contextmanager
def running_world() -> Iterator[World]:
    aws = FakeAws()
    boto_session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    aws.attach(boto_session)
    with running_fake_api() as api, patch(TELEMETRY):
        session = QueueTrainingJobSession(boto_session, api_url=api.url, poll_seconds=0.001)
        yield World(api=api, aws=aws, session=session)


def estimator(session: Session, **options: Any) -> sagemaker.estimator.Estimator:
    values: dict[str, Any] = {
        "image_uri": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1",
        "role": ROLE,
        "instance_count": 2,
        "instance_type": "ml.p5.48xlarge",
        "output_path": "s3://bucket/out",
        "sagemaker_session": session,
        "hyperparameters": {"steps": 3},
        "tags": [{"Key": "priority", "Value": "3"}],
    }
    return sagemaker.estimator.Estimator(**values | options)


def script_job(api: FakeApi, *views: dict[str, Any]) -> None:
    """What the API answers for job1, one view a look."""
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
    api.script("GET", "/jobs/job1", *(Scripted(document=one) for one in views))


def script_logs(aws: FakeAws, lines: dict[str, list[str]]) -> None:
    """CloudWatch has these lines of algo-1 of each training job; a stream ends with its first page."""

    def streams(body: Document) -> Document:
        name = body["logStreamNamePrefix"].partition("/")[0]
        return {"logStreams": [{"logStreamName": f"{name}/algo-1-1"}] if name in lines else []}

    def events(body: Document) -> Document:
        name = body["logStreamName"].partition("/")[0]
        page = [] if body.get("nextToken") == "end" else lines[name]
        found = [{"timestamp": 1795224000000 + at, "message": text} for at, text in enumerate(page)]
        return {"events": found, "nextForwardToken": "end"}

    aws.answers |= {"DescribeLogStreams": streams, "GetLogEvents": events}
