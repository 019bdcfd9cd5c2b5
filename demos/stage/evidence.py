"""Reads what really happened in a twin from the API, CloudWatch Logs and S3."""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from training.metrics import metrics_in

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client

LOG_GROUP = "/aws/sagemaker/TrainingJobs"

Document = dict[str, Any]

_RESUMED = re.compile(r"resumed from step=(\d+) file=(\S+) sha256=([0-9a-f]{64})")
_FREEING = frozenset({"completed", "failed", "stopped", "preempted"})
"""States in which a job has no instances any more."""


def log_lines(logs: "CloudWatchLogsClient", training_job_name: str) -> list[str]:
    """Return everything a training job printed, in order; nothing before its first line."""
    return group_lines(logs, LOG_GROUP, prefix=f"{training_job_name}/")


def group_lines(logs: "CloudWatchLogsClient", group: str, *, prefix: str = "") -> list[str]:
    """Return the lines of all streams of a log group that begin so; none while there is no such group."""
    lines: list[str] = []
    for name in _stream_names(logs, group, prefix):
        where: Any = {"logGroupName": group, "logStreamName": name}
        answer = logs.get_log_events(**where, startFromHead=True)
        while answer["events"]:
            lines += [event["message"] for event in answer["events"]]
            answer = logs.get_log_events(**where, startFromHead=True, nextToken=answer["nextForwardToken"])
    return lines


def last_lines(logs: "CloudWatchLogsClient", training_job_name: str, *, count: int) -> list[str]:
    """Return the last lines of each host of a training job, without reading those before."""
    answers = (
        logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=name, startFromHead=False, limit=count)
        for name in _stream_names(logs, LOG_GROUP, f"{training_job_name}/")
    )
    return [event["message"] for answer in answers for event in answer["events"]]


def _stream_names(logs: "CloudWatchLogsClient", group: str, prefix: str) -> list[str]:
    only: Any = {"logStreamNamePrefix": prefix} if prefix else {}
    try:
        streams = logs.describe_log_streams(logGroupName=group, **only)
    except logs.exceptions.ResourceNotFoundException:  # made with the first line of the first job
        return []
    return [stream["logStreamName"] for stream in streams["logStreams"]]


def losses_of(lines: Iterable[str]) -> list[tuple[int, float]]:
    """Return (step, loss) of each metric line."""
    return [(int(metrics["step"]), float(metrics["loss"])) for line in lines if (metrics := metrics_in(line))]


class Bucket:
    """Checkpoints as they lie in S3."""

    def __init__(self, s3: "S3Client") -> None:
        self._s3 = s3

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


def resumed_from(lines: Iterable[str], checkpoints: str) -> Document | None:
    """Return the checkpoint that a training says it began with, given their S3 prefix; None if none."""
    resumed = next(filter(None, map(_RESUMED.search, lines)), None)
    if resumed is None:
        return None
    return {"s3_uri": f"{checkpoints}/{resumed[2]}", "step": int(resumed[1]), "sha256_read": resumed[3]}
