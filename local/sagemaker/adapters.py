"""The ports of the training twin on boto3 clients, whatever engine answers them, and on our CloudWatch."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.cloudwatch.metrics import Metric
from local.sagemaker.loads import NAMESPACE, Sample
from local.sagemaker.ports import LogLine

if TYPE_CHECKING:  # the stubs are not installed where the twin only runs
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client


class S3Store:
    """An ``ObjectStore``."""

    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def has_bucket(self, bucket: str) -> bool:
        try:
            self._client.head_bucket(Bucket=bucket)
        except ClientError as error:
            if _is_missing(error):
                return False
            raise
        return True

    def keys(self, bucket: str, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def read(self, bucket: str, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            raise _as_file_error(error, bucket, key) from error

    def write(self, bucket: str, key: str, body: bytes) -> None:
        try:
            self._client.put_object(Bucket=bucket, Key=key, Body=body)
        except ClientError as error:
            raise _as_file_error(error, bucket, key) from error

    def delete(self, bucket: str, key: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=key)


class CloudWatchMetrics:
    """A ``MetricSink``."""

    def __init__(self, cloudwatch: CloudWatchTwin) -> None:
        self._cloudwatch = cloudwatch

    def put(self, sample: Sample, *, at: datetime) -> None:
        metric = Metric(namespace=NAMESPACE, name=sample.metric, dimensions=frozenset({sample.dimension}))
        self._cloudwatch.put(metric, sample.value, at=at, unit=sample.unit)


class CloudWatchLogSink:
    """A ``LogSink``."""

    def __init__(self, client: "CloudWatchLogsClient") -> None:
        self._client = client
        self._streams: set[tuple[str, str]] = set()

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        if (group, stream) not in self._streams:
            with suppress(self._client.exceptions.ResourceAlreadyExistsException):
                self._client.create_log_group(logGroupName=group)
            with suppress(self._client.exceptions.ResourceAlreadyExistsException):
                self._client.create_log_stream(logGroupName=group, logStreamName=stream)
            self._streams.add((group, stream))
        self._client.put_log_events(
            logGroupName=group,
            logStreamName=stream,
            logEvents=[{"timestamp": line.timestamp_ms, "message": line.message} for line in lines],
        )


def _is_missing(error: ClientError) -> bool:
    return error.response["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.NOT_FOUND


def _as_file_error(error: ClientError, bucket: str, key: str) -> Exception:
    return FileNotFoundError(f"no s3://{bucket}/{key}") if _is_missing(error) else error
