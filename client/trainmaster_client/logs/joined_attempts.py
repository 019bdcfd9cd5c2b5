"""Joins what a job's attempts printed into one sequence of lines, and shows a line."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import merge
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import LogsExpiredError, LogsUnansweredError, LogsUnreadableError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import Attempt, job_view
from trainmaster_client.jobs.progress import ExpiryNotice
from trainmaster_client.logs.log_streams import Event, LogStream, LogStreams

MOST_TAIL_LINES = 10_000
"""CloudWatch Logs API reference, GetLogEvents, limit."""

_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Sequences that programs print for colours and cursor moves (ECMA-48, control sequences)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    attempt: int
    host: str
    """Name of the host, such as ``algo-1``."""
    at: datetime
    text: str
    """The line as printed, without its line break; it may hold escape sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Chooses lines; the default is all of them."""

    attempt: int | None = None
    host: str | None = None
    since: datetime | None = None
    tail: int | None = None
    """Number of lines, the newest, to read at the first look; None for all."""

    @property
    def window(self) -> dict[str, int]:
        """Arguments of GetLogEvents that select the time."""
        return {} if self.since is None else {"startTime": int(self.since.timestamp() * 1000)}


EVERYTHING = Selection()


@dataclass(slots=True)
class _Reading:
    """Position up to which one attempt was read."""

    tokens: dict[str, str | None] = field(default_factory=dict)
    """Next page's token by stream; None means the stream's beginning."""
    shown: dict[str, int] = field(default_factory=dict)
    """Lines by stream that were already yielded from the page behind the token."""
    has_lines: bool = False
    is_over: bool = False
    """Whether it has ended, a later attempt writes, and a whole look at it found nothing new."""


class JobLogs:
    """Reads one job, attempt after attempt, and within an attempt its hosts' lines by their time.

    Each line comes once. What an attempt printed comes before the next one's lines as far as CloudWatch had
    it when those were read; a line that arrives later comes with the next call and its own attempt's number.
    An attempt is asked again until it has ended, a later one writes, and nothing new was found.
    """

    def __init__(self, logs_client: Any, selection: Selection = EVERYTHING) -> None:  # noqa: ANN401  boto3's
        self._streams = LogStreams(logs_client)
        self._selection = selection
        self._readings: dict[int, _Reading] = {}

    def read_with(self, logs_client: Any) -> None:  # noqa: ANN401  boto3's
        """Read on with this client, which has other credentials."""
        self._streams = LogStreams(logs_client)

    def new_lines(self, document: Document) -> list[LogLine]:
        """Return the lines since the last call; ``document`` is the job as the API answers it now."""
        return list(self.lines(document))

    def lines(self, document: Document) -> Iterator[LogLine]:
        """Yield the lines of ``new_lines``, holding one page of each host at a time; read it to its end."""
        attempts = [
            attempt
            for attempt in job_view(document).attempts
            if self._selection.attempt in {None, attempt.number}
        ]
        if self._selection.tail is not None and not self._readings:
            try:
                yield from self._tail(attempts, self._selection.tail)
            except LogsUnansweredError:
                self._readings.clear()  # the next look is the first one again
                raise
            return
        for attempt in attempts:
            yield from self._attempt_lines(attempt)

    def _attempt_lines(self, attempt: Attempt) -> Iterator[LogLine]:
        reading = self._readings.setdefault(attempt.number, _Reading())
        if reading.is_over:
            return
        streams = self._streams_of(attempt)
        parts = [self._stream_lines(attempt.number, stream, reading) for stream in streams]
        nothing_new = True
        for line, stream in merge(*parts, key=lambda part: part[0].at):
            reading.has_lines, nothing_new = True, False
            reading.shown[stream] = reading.shown.get(stream, 0) + 1
            yield line
        reading.is_over = nothing_new and self._is_followed(attempt)

    def _stream_lines(
        self, attempt: int, stream: LogStream, reading: _Reading
    ) -> Iterator[tuple[LogLine, str]]:
        """Yield each line with its stream's name.

        A page counts as read once its lines were yielded: another stream may fail before.
        """
        name = stream.name
        while True:
            page = self._streams.next_page(name, reading.tokens.get(name), **self._selection.window)
            for event in page.events[reading.shown.get(name, 0) :]:
                yield _line(event, attempt, stream), name
            reading.tokens[name], reading.shown[name] = page.forward, 0
            if not page.events:
                return

    def _is_followed(self, attempt: Attempt) -> bool:
        later = (reading for number, reading in self._readings.items() if number > attempt.number)
        return attempt.ended_at is not None and any(reading.has_lines for reading in later)

    def _tail(self, attempts: Sequence[Attempt], count: int) -> Iterator[LogLine]:
        """Yield the last ``count`` lines; attempts before those that hold them are not read at all."""
        lines: list[LogLine] = []
        for attempt in reversed(attempts):
            reading = self._readings.setdefault(attempt.number, _Reading())
            if len(lines) >= count:
                reading.is_over = True
                continue
            parts = [
                self._last_lines(attempt.number, stream, reading, count)
                for stream in self._streams_of(attempt)
            ]
            newest = list(merge(*parts, key=lambda line: line.at))
            reading.has_lines = bool(newest)
            lines = [*newest[len(lines) - count :], *lines]
        yield from lines

    def _last_lines(
        self, attempt: int, stream: LogStream, reading: _Reading, count: int
    ) -> Iterator[LogLine]:
        page = self._streams.last_page(stream.name, limit=count, **self._selection.window)
        reading.tokens[stream.name] = page.forward
        yield from (_line(event, attempt, stream) for event in page.events)

    def _streams_of(self, attempt: Attempt) -> list[LogStream]:
        """Return the attempt's streams; none for an attempt that SageMaker does not know yet."""
        if not attempt.training_job_name:
            return []
        streams = self._streams.of(attempt.training_job_name)
        return [stream for stream in streams if self._selection.host in {None, stream.host}]


def _line(event: Event, attempt: int, stream: LogStream) -> LogLine:
    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return LogLine(attempt=attempt, host=stream.host, at=at, text=event["message"].rstrip("\r\n"))


def host_count(document: Mapping[str, Any]) -> int:
    """Return the number of hosts in the shape that a job, as the API answers it, runs in."""
    return sum(int(count) for count in (document.get("instances") or {}).values())


def cleaned(text: str) -> str:
    """Return the text as a terminal finally shows it: a progress bar's last state, no control codes."""
    shown = [part for part in _STYLE.sub("", text).split("\r") if part]
    return printable(shown[-1].expandtabs()) if shown else ""


class LogTail:
    """A job's new lines, look after look.

    Args:
        make_client: Gives a client for CloudWatch Logs without our hooks; asked when there is an attempt, and
            again when the credentials have expired.
        expiry: Of the wait that the lines are read in.
    """

    def __init__(self, make_client: Callable[[], Any], *, expiry: ExpiryNotice | None = None) -> None:
        self._make_client = make_client
        self._expiry = expiry or ExpiryNotice()
        self._logs: JobLogs | None = None
        self._is_readable = True
        self._is_answered = True

    def lines(self, document: Document) -> list[str]:
        """Return the new lines, each with its host before it if the job has several.

        The wait does not depend on the right to read logs: without it one line says so. Lines that
        CloudWatch does not give now come when it answers again.
        """
        if not self._is_readable or not document.get("attempts"):
            return []
        if self._logs is None:
            self._logs = JobLogs(self._make_client())
        new_lines: list[LogLine] = []
        notices: list[str] = []
        try:
            new_lines.extend(self._logs.lines(document))  # keeps those before a failure
            self._is_answered = True
        except LogsExpiredError:
            self._logs.read_with(self._make_client())
            notices = self._expiry.lines() if self._is_answered else []
            self._is_answered = False
        except LogsUnansweredError as error:
            notices = [f"No new log lines for now: {error}"] if self._is_answered else []
            self._is_answered = False
        except LogsUnreadableError as error:
            self._is_readable = False
            notices = [f"No log lines: {error}"]
        names_hosts = host_count(document) > 1
        shown = [
            f"{line.host} | {cleaned(line.text)}" if names_hosts else cleaned(line.text) for line in new_lines
        ]
        return [*shown, *notices]
