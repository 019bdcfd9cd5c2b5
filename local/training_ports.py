"""What the training twin needs of storage and logs, over the engine's clients."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from local.sagemaker.ports import LogLine

_ABSENT = frozenset({"404", "NoSuchBucket", "NoSuchKey"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """S3 as ``ObjectStore``."""

    s3: Any
    """A boto3 client."""

    def has_bucket(self, bucket: str) -> bool:
        try:
            self.s3.head_bucket(Bucket=bucket)
        except ClientError as error:
            _only_absence(error)
            return False
        return True

    def keys(self, bucket: str, prefix: str) -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def read(self, bucket: str, key: str) -> bytes:
        try:
            body = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            _only_absence(error)
            raise FileNotFoundError(f"s3://{bucket}/{key}") from error
        assert isinstance(body, bytes)
        return body

    def write(self, bucket: str, key: str, body: bytes) -> None:
        try:
            self.s3.put_object(Bucket=bucket, Key=key, Body=body)
        except ClientError as error:
            _only_absence(error)
            raise FileNotFoundError(f"s3://{bucket}") from error

    def delete(self, bucket: str, key: str) -> None:
        self.s3.delete_object(Bucket=bucket, Key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStreams:
    """CloudWatch Logs as ``LogSink``."""

    logs: Any
    """A boto3 client."""
    _known: set[tuple[str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        with self._lock:
            self._make(group, stream)
        events = [{"timestamp": line.timestamp_ms, "message": line.message} for line in lines]
        self.logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)

    def _make(self, group: str, stream: str) -> None:
        if (group, stream) in self._known:
            return
        exists = self.logs.exceptions.ResourceAlreadyExistsException
        with suppress(exists):
            self.logs.create_log_group(logGroupName=group)
        with suppress(exists):
            self.logs.create_log_stream(logGroupName=group, logStreamName=stream)
        self._known.add((group, stream))


def _only_absence(error: ClientError) -> None:
    """Raise the error again unless it says that the bucket or object is not there."""
    if error.response["Error"]["Code"] not in _ABSENT:
        raise error
