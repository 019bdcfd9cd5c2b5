"""Log loops of the SDKs and of plain boto3 that follow a job across its attempts without knowing it.

They list the streams under the name that was submitted and read those to their end. Here such a stream goes
on, where its training job's ends, with the stream of the same host in the next attempt.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.hooks import BaseEventHooks

from trainmaster_client.errors import ApiFailedError, ApiUnreachableError, LogsUnreadableError
from trainmaster_client.log_streams import LOG_GROUP, LogStream, LogStreams
from trainmaster_client.queued_jobs import QueuedJobs
from trainmaster_client.views import Attempt, job_view

LISTED_SECONDS = 5.0
"""How long a list of streams is taken for true: CloudWatch allows few such calls a second."""
LATE_LINES = timedelta(minutes=5)
"""Lines of an attempt are not stamped later than this after its end."""
_MARK = "trainmaster:"
"""Begins our tokens: the mark, a stream's name, a colon (which no such name has), CloudWatch's token."""

Answer: TypeAlias = tuple[AWSResponse, dict[str, Any]]


def register(events: BaseEventHooks, queued: QueuedJobs, make_client: Callable[[], Any]) -> None:
    """Join the logs that clients of these events read; twice is harmless.

    Args:
        events: Of a boto3 session, before its client for logs is made, or of one client (``meta.events``).
        queued: Knows which job a name belongs to.
        make_client: Gives a client for CloudWatch Logs without these hooks; asked once, at the first need.
    """
    joined = _JoinedLogs(queued, make_client)
    for operation, handler in (("DescribeLogStreams", joined.streams), ("GetLogEvents", joined.events)):
        name = f"before-call.cloudwatch-logs.{operation}"
        events.register(name, handler, unique_id=f"trainmaster-{operation}")  # type: ignore[arg-type]  # stubs: no answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a reader stands in the joined stream of a host."""

    stream: str
    token: str | None

    @classmethod
    def asked(cls, stream: str, token: str | None) -> "_Place":
        """A token that is not ours is CloudWatch's, of the stream itself."""
        if not token or not token.startswith(_MARK):
            return cls(stream=stream, token=token)
        found, _, real = token.removeprefix(_MARK).partition(":")
        return cls(stream=found, token=real or None)

    @property
    def text(self) -> str:
        return f"{_MARK}{self.stream}:{self.token or ''}"


class _JoinedLogs:
    def __init__(self, queued: QueuedJobs, make_client: Callable[[], Any]) -> None:
        self._queued = queued
        self._make_client = make_client
        self._made: LogStreams | None = None
        self._listed: dict[str, tuple[float, list[LogStream]]] = {}

    def streams(self, params: dict[str, Any], **_: object) -> Answer | None:
        """None: CloudWatch answers. Else one stream a host, named as if it were the first attempt's."""
        asked = _asked(params)
        prefix = asked.get("logStreamNamePrefix") or ""
        name, slash, _rest = prefix.partition("/")
        attempts = self._later_attempts(name) if slash else None
        if attempts is None:
            return None
        hosts: dict[str, LogStream] = {}
        for stream in self._all_streams(attempts):
            hosts.setdefault(stream.host, stream)
        names = [f"{name}/{one.name.partition('/')[2]}" for one in hosts.values()]
        return _answer({"logStreams": [{"logStreamName": one} for one in names if one.startswith(prefix)]})

    def events(self, params: dict[str, Any], **_: object) -> Answer | None:
        """None: CloudWatch answers, as it does to whoever reads from the end backwards."""
        asked = _asked(params)
        stream = LogStream.parse(asked.get("logStreamName") or "")
        place = _Place.asked(asked.get("logStreamName") or "", asked.get("nextToken"))
        if stream is None or not (asked.get("startFromHead") or asked.get("nextToken", "").startswith(_MARK)):
            return None
        attempts = self._later_attempts(stream.name.partition("/")[0])
        if attempts is None:
            return None
        options: dict[str, int] = {
            key: asked[key] for key in ("startTime", "endTime", "limit") if key in asked
        }
        chain = [one.name for one in self._all_streams(_since(attempts, asked)) if one.host == stream.host]
        return self._next_events(chain, place, options)

    def _next_events(self, chain: list[str], place: _Place, options: dict[str, int]) -> Answer:
        """The first page that holds something, from the place on."""
        begin = chain.index(place.stream) if place.stream in chain else 0
        found: list[Any] = []
        for name in chain[begin:]:
            token = place.token if name == place.stream else None
            with _the_callers_errors():
                page = self._reader().next_page(name, token, **options)
            place, found = _Place(stream=name, token=page.forward), page.events
            if found:
                break
        return _answer({"events": found, "nextForwardToken": place.text, "nextBackwardToken": place.text})

    def _later_attempts(self, name: str) -> Sequence[Attempt] | None:
        """The attempts of a job with this very name; None where there is nothing to join.

        An API that does not answer is no reason not to read logs.
        """
        try:
            document = self._queued.find(name)
        except (ApiUnreachableError, ApiFailedError):
            return None
        if document is None or document.get("name") != name:
            return None
        attempts = [one for one in job_view(document).attempts if one.training_job_name]
        return attempts if any(one.training_job_name != name for one in attempts) else None

    def _all_streams(self, attempts: Sequence[Attempt]) -> Iterator[LogStream]:
        for number, attempt in enumerate(attempts, start=1):
            over = attempt.ended_at is not None and number < len(attempts)
            yield from self._streams_of(attempt.training_job_name, over=over)

    def _streams_of(self, training_job_name: str, *, over: bool) -> list[LogStream]:
        """Listed anew after some seconds; those of an attempt that is over once more, and never again."""
        listed_at, streams = self._listed.get(training_job_name, (float("-inf"), []))
        if time.monotonic() - listed_at >= LISTED_SECONDS:
            with _the_callers_errors():
                streams = self._reader().of(training_job_name)
            self._listed[training_job_name] = (float("inf") if over else time.monotonic(), streams)
        return streams

    def _reader(self) -> LogStreams:
        if self._made is None:
            self._made = LogStreams(self._make_client())
        return self._made


@contextmanager
def _the_callers_errors() -> Iterator[None]:
    """Those that the caller's own call would have raised."""
    try:
        yield
    except LogsUnreadableError as error:
        raise (error.__cause__ or error) from None


def _asked(params: dict[str, Any]) -> dict[str, Any]:
    """The request, of the log group of training jobs; of any other nothing."""
    asked: dict[str, Any] = json.loads(params["body"])
    return asked if asked.get("logGroupName") == LOG_GROUP else {}


def _since(attempts: Sequence[Attempt], asked: dict[str, Any]) -> Sequence[Attempt]:
    """Those that may hold lines of the time asked for; the last one in any case."""
    since = datetime.fromtimestamp(asked.get("startTime", 0) / 1000, UTC)
    recent = [one for one in attempts if one.ended_at is None or one.ended_at + LATE_LINES >= since]
    return recent or attempts[-1:]


def _answer(parsed: dict[str, Any]) -> Answer:
    """What botocore takes instead of a call."""
    metadata = {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}
    return AWSResponse("", 200, HTTPHeaders(), None), {**parsed, "ResponseMetadata": metadata}
