"""Reads what really happened in a twin from the API, CloudWatch Logs and S3."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

LOG_GROUP = "/aws/sagemaker/TrainingJobs"

Document = dict[str, Any]

_FREEING = frozenset({"completed", "failed", "stopped", "preempted"})
"""States in which a job has no instances any more."""


def log_lines(logs: "CloudWatchLogsClient", training_job_name: str) -> list[str]:
    """Return everything a training job printed, in order; nothing before its first line."""
    return [line for name in _stream_names(logs, training_job_name) for line in _stream(logs, name)]


def last_lines(logs: "CloudWatchLogsClient", training_job_name: str, *, count: int) -> list[str]:
    """Return the last lines of each host of a training job, without reading those before."""
    answers = (
        logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=name, startFromHead=False, limit=count)
        for name in _stream_names(logs, training_job_name)
    )
    return [event["message"] for answer in answers for event in answer["events"]]


def _stream_names(logs: "CloudWatchLogsClient", training_job_name: str) -> list[str]:
    try:
        streams = logs.describe_log_streams(
            logGroupName=LOG_GROUP, logStreamNamePrefix=f"{training_job_name}/"
        )
    except logs.exceptions.ResourceNotFoundException:  # made with the first line of the first job
        return []
    return [stream["logStreamName"] for stream in streams["logStreams"]]


def _stream(logs: "CloudWatchLogsClient", name: str) -> Iterator[str]:
    answer = logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=name, startFromHead=True)
    while answer["events"]:
        yield from (event["message"] for event in answer["events"])
        token = answer["nextForwardToken"]
        answer = logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=name, startFromHead=True, nextToken=token
        )


class Bucket:
    """Checkpoints as they lie in S3."""

    def __init__(self) -> None:
        self._s3 = boto3.client("s3")

    def step(self, checkpoints: str) -> int:
        """Return the step of the newest whole checkpoint; 0 before the first."""
        try:
            return int(json.loads(self._read(f"{checkpoints}/status.json"))["step"])
        except ClientError:
            return 0

    def hashes(self, checkpoints: str) -> dict[str, str]:
        """Return the SHA-256 of every object below the prefix, by S3 URI."""
        bucket, _, prefix = checkpoints.removeprefix("s3://").partition("/")
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
        uris = [f"s3://{bucket}/{entry['Key']}" for page in pages for entry in page.get("Contents", [])]
        return {uri: hashlib.sha256(self._read(uri)).hexdigest() for uri in uris}

    def _read(self, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        body: bytes = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


def transitions(jobs: Iterable[Document]) -> list[Document]:
    """Return every step of every job, in the order in which they happened."""
    steps = [{"job": job["name"], **line} for job in jobs for line in job["history"]]
    return sorted(steps, key=lambda step: (*instant_of(step), step["job"]))


def instant_of(step: Document) -> tuple[str, bool]:
    """Give what steps of jobs are sorted by.

    A clock that is moved by hand stands still while the plane works, so several steps have one instant. What
    an end has freed is taken after it.
    """
    return step["at"], step["to"] not in _FREEING
