"""The log streams of one training job, and pages of their lines, as CloudWatch Logs keeps them.

Each host of a training job writes to streams ``<training job name>/algo-<n>-<epoch>``: one, or after a spot
interruption another one beside it. (Source: SageMaker guide, "Log groups and streams that SageMaker sends".)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnectionError

from trainmaster_client.errors import LogsExpiredError, LogsUnansweredError, LogsUnreadableError
from trainmaster_client.http.expiry import CREDENTIAL_ERRORS, is_expired

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
HOST_PREFIX = "algo-"

_NAME = re.compile(r"[^/]+/(?P<host>algo-(?P<number>\d+))-(?P<begun>\d+)")
_NOT_THERE = "ResourceNotFoundException"
"""No group before the first training job of a region, no stream before the first line."""
_TOO_OFTEN = "ThrottlingException"
_FAILED = 500

Event = Mapping[str, Any]
"""``timestamp`` in milliseconds since 1970, ``message``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    name: str
    host: str
    order: tuple[int, int]
    """Hosts by number; of one host the stream that began first."""

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Parse a stream's name; None if no host writes that stream."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(name=name, host=match["host"], order=(int(match["number"]), int(match["begun"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    events: list[Event]
    forward: str | None


class LogStreams:
    """Reads with one boto3 client for CloudWatch Logs, which retries what is throttled.

    Raises LogsUnreadableError; LogsUnansweredError where the same call may be answered later.
    """

    def __init__(self, logs_client: Any) -> None:  # noqa: ANN401  boto3 makes its clients at run time
        self._client = logs_client

    def of(self, training_job_name: str) -> list[LogStream]:
        """Return the streams host by host; none before the first line."""
        streams: list[LogStream | None] = []
        request: dict[str, str] = {}
        while True:
            answer = self._call(
                "describe_log_streams", logStreamNamePrefix=f"{training_job_name}/", **request
            )
            streams += [LogStream.parse(stream["logStreamName"]) for stream in answer.get("logStreams") or ()]
            if not answer.get("nextToken"):
                return in_order(stream for stream in streams if stream)
            request = {"nextToken": answer["nextToken"]}

    def next_page(self, stream: str, token: str | None, **options: int) -> Page:
        """Return the page after ``token``; it is empty only if nothing follows now.

        CloudWatch may answer with an empty page before the end: then the next one is asked for at once.

        Args:
            stream: Its name.
            token: ``forward`` of the page before.
            options: GetLogEvents' own: startTime, endTime, limit.
        """
        while True:
            page = self._page(stream, startFromHead=True, nextToken=token, **options)
            if page.events or page.forward in {token, None}:
                return page
            token = page.forward

    def last_page(self, stream: str, **options: int) -> Page:
        """Return the newest lines, as many as fit into a page: 1 MB and 10,000, or ``limit``."""
        return self._page(stream, startFromHead=False, **options)

    def _page(self, stream: str, **options: str | int | None) -> Page:
        given = {key: value for key, value in options.items() if value is not None}
        answer = self._call("get_log_events", logStreamName=stream, **given)
        return Page(events=answer.get("events") or [], forward=answer.get("nextForwardToken"))

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401  boto3's
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(logGroupName=LOG_GROUP, **request)
        except CREDENTIAL_ERRORS as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == _NOT_THERE:
                return {}
            raise _kind_of(error)(f"{error}.") from error
        return answer


def _kind_of(error: Exception) -> type[LogsUnreadableError]:
    """Choose the error to raise; a right is missing only if nothing else explains the refusal."""
    if is_expired(error):
        return LogsExpiredError
    is_silent = isinstance(error, NoConnectionError | HTTPClientError) or _is_its_own(error)
    return LogsUnansweredError if is_silent else LogsUnreadableError


def _is_its_own(error: Exception) -> bool:
    """Tell whether the service itself failed, or was called too often."""
    if not isinstance(error, ClientError):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= _FAILED or error.response["Error"]["Code"] == _TOO_OFTEN


def in_order(streams: Iterable[LogStream]) -> list[LogStream]:
    return sorted(streams, key=lambda stream: stream.order)
