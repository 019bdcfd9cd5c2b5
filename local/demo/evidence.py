"""What really happened, read from the API, CloudWatch Logs, S3 and the twin's journal."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
_LOSS = re.compile(r"^\[step (\d+)/\d+\] loss=([0-9.eE+-]+) ")
_RESUMED = re.compile(r"^resumed from step=(\d+) file=(\S+) sha256=([0-9a-f]{64})")

Loss = tuple[int, float]
Document = dict[str, Any]


def losses_of(lines: Iterable[str]) -> list[Loss]:
    """(step, loss) of each loss line."""
    return [(int(found[1]), float(found[2])) for line in lines if (found := _LOSS.match(line))]


def log_lines(logs: "CloudWatchLogsClient", training_job_name: str) -> list[str]:
    """Everything a training job printed, in order."""
    streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{training_job_name}/")
    names = [stream["logStreamName"] for stream in streams["logStreams"]]
    return [line for name in names for line in _stream(logs, name)]


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
        """Of the newest whole checkpoint; 0 before the first."""
        try:
            return int(json.loads(self._read(f"{checkpoints}/status.json"))["step"])
        except ClientError:
            return 0

    def hashes(self, checkpoints: str) -> dict[str, str]:
        """SHA-256 by S3 URI of every object below the prefix."""
        bucket, _, prefix = checkpoints.removeprefix("s3://").partition("/")
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
        uris = [f"s3://{bucket}/{one['Key']}" for page in pages for one in page.get("Contents", [])]
        return {uri: hashlib.sha256(self._read(uri)).hexdigest() for uri in uris}

    def _read(self, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        body: bytes = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


def transitions(jobs: Iterable[Document]) -> list[Document]:
    """Every step of every job, in the order in which they happened."""
    steps = [{"job": job["name"], **line} for job in jobs for line in job["history"]]
    return sorted(steps, key=lambda step: (step["at"], step["job"]))


def attempts(
    jobs: Sequence[Document], checkpoints: Mapping[str, str], stored: Mapping[str, str]
) -> list[Document]:
    """What each attempt did, from its log.

    Args:
        jobs: Answers of GET /jobs/{name}.
        checkpoints: S3 prefix by job name.
        stored: SHA-256 by S3 URI, of the checkpoints as they lay in S3 while their job was preempted.
    """
    logs = boto3.client("logs")
    return [
        _attempt(job["name"], attempt, log_lines(logs, attempt["training_job_name"]), checkpoints, stored)
        for job in jobs
        for attempt in job["attempts"]
    ]


def _attempt(
    job: str, attempt: Document, lines: list[str], checkpoints: Mapping[str, str], stored: Mapping[str, str]
) -> Document:
    losses = losses_of(lines)
    resumed = next((found for line in lines if (found := _RESUMED.match(line))), None)
    uri = None if resumed is None else f"{checkpoints[job]}/{resumed[2]}"
    return {
        "job": job,
        "attempt": attempt["attempt"],
        "training_job_name": attempt["training_job_name"],
        "status": attempt["status"],
        "first_step": losses[0][0] if losses else None,
        "last_step": losses[-1][0] if losses else None,
        "resumed_from": None
        if resumed is None or uri is None
        else {"s3_uri": uri, "step": int(resumed[1]), "sha256": stored.get(uri), "sha256_read": resumed[3]},
        "losses": [list(loss) for loss in losses],
    }


def most_at_once(journal: Iterable[Document]) -> int:
    """Training containers alive at the same instant, from the process events."""
    alive: set[int] = set()
    most = 0
    for record in journal:
        if record["kind"] == "process" and record["event"] == "start":
            alive.add(record["pid"])
            most = max(most, len(alive))
        if record["kind"] == "process" and record["event"] == "exit":
            alive.discard(record["pid"])
    return most


def reference_losses(output: Path) -> list[Loss]:
    return losses_of(output.read_text(encoding="utf-8").splitlines())
