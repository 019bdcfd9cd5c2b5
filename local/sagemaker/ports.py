"""The services of the twin that the training twin needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from local.sagemaker.loads import Sample


class ObjectStore(Protocol):
    """S3, without signatures."""

    def has_bucket(self, bucket: str) -> bool: ...

    def keys(self, bucket: str, prefix: str) -> list[str]:
        """Return all keys that begin with the prefix, in order."""
        ...

    def read(self, bucket: str, key: str) -> bytes:
        """Return the object. Raises ``FileNotFoundError`` if there is no such object or bucket."""
        ...

    def write(self, bucket: str, key: str, body: bytes) -> None:
        """Raises ``FileNotFoundError`` when there is no such bucket."""
        ...

    def delete(self, bucket: str, key: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    timestamp_ms: int
    message: str


class LogSink(Protocol):
    """CloudWatch Logs; makes the group and the stream when they are not there."""

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None: ...


class EventSink(Protocol):
    """Takes "SageMaker Training Job State Change" from ``aws.sagemaker``; returns before any delivery."""

    def publish(self, detail: dict[str, Any], resources: list[str]) -> None: ...


class MetricSink(Protocol):
    """A place for CloudWatch's metrics."""

    def put(self, sample: Sample, *, at: datetime) -> None: ...
