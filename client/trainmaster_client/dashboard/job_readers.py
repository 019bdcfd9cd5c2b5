"""Logs and curves of jobs, read from CloudWatch Logs with the caller's own credentials and kept a while."""

import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.dashboard.metric_lines import Curve, numbers
from trainmaster_client.logs.joined_attempts import JobLogs, LogLine, Selection, cleaned

TAIL_LINES = 1000
"""The first look at a log begins with so many of its lines, the newest."""
KEPT_LINES = 5000
"""Lines kept of one log, for browsers that come back for them."""
MOST_READERS = 24
"""Logs and curves that are looked at; the one that was not for longest is let go."""
LEAST_SECONDS = 2.0
"""Seconds between two looks at CloudWatch for the same job, however many windows ask: few calls are
allowed."""
MOST_LINES_AT_ONCE = 20_000
"""Lines that one look reads for a curve, a few seconds' worth; the next look continues there."""
FIRST_HOST = "algo-1"
"""Host whose first rank prints the metric lines."""


@dataclass(slots=True)
class LogReader:
    """Reads a job's newest lines, numbered: a window that lost an answer asks for the same lines again."""

    logs: JobLogs
    epoch: str = field(default_factory=lambda: secrets.token_hex(4))
    """Another one: the numbers began again, as after a restart."""
    lines: deque[tuple[int, LogLine]] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    next_number: int = 0
    looked_at: float = float("-inf")
    using: threading.Lock = field(default_factory=threading.Lock)

    def look(self, document: Document, *, now: float) -> None:
        """Raises LogsUnreadableError; what was read before that is kept."""
        if now - self.looked_at < LEAST_SECONDS:
            return
        self.looked_at = now
        for line in self.logs.lines(document):
            self.lines.append((self.next_number, line))
            self.next_number += 1

    def answer(self, after: str) -> Document:
        """Return the lines since ``after``, the ``next`` of an earlier answer; else all kept lines."""
        epoch, _, number = after.partition(".")
        is_known = epoch == self.epoch and number.isdecimal()
        begin = int(number) if is_known else 0
        lines = [(number, line) for number, line in self.lines if number >= begin]
        first = lines[0][0] if lines else self.next_number
        return {
            "is_new": not is_known,
            "skipped": max(0, first - begin) if is_known else 0,
            "next": f"{self.epoch}.{self.next_number}",
            "lines": [_line(line) for _, line in lines],
        }


def _line(line: LogLine) -> Document:
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"attempt": line.attempt, "host": line.host, "at": at, "text": cleaned(line.text)}


@dataclass(slots=True)
class CurveReader:
    """Reads a job's metric lines, from the first attempt on."""

    logs: JobLogs
    curves: dict[int, Curve] = field(default_factory=dict)
    looked_at: float = float("-inf")
    using: threading.Lock = field(default_factory=threading.Lock)
    has_more: bool = False

    def look(self, document: Document, *, now: float) -> None:
        """Read new lines into curves. Raises LogsUnreadableError; what was read before is kept."""
        if now - self.looked_at < LEAST_SECONDS:
            return
        self.looked_at = now
        read = 0
        for line in islice(self.logs.lines(document), MOST_LINES_AT_ONCE):
            read += 1
            if values := numbers(cleaned(line.text)):
                point = {**values, "at": line.at.timestamp()}
                self.curves.setdefault(line.attempt, Curve()).add(point)
        self.has_more = read == MOST_LINES_AT_ONCE

    def answer(self) -> Document:
        curves = [
            {"attempt": number, "points": curve.points} for number, curve in sorted(self.curves.items())
        ]
        return {"curves": curves, "has_more": self.has_more}


class JobReaders:
    """Threads may share it.

    Args:
        make_client: Gives a client for CloudWatch Logs.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self, make_client: Callable[[], Any], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._make_client = make_client
        self._monotonic = monotonic
        self._choosing = threading.Lock()
        self._logs: OrderedDict[tuple[str, int | None, str | None], LogReader] = OrderedDict()
        self._curves: OrderedDict[str, CurveReader] = OrderedDict()

    def log(self, document: Document, *, after: str, selection: Selection) -> Document:
        """Return the log of ``document``, the job as the API answers it now. Raises LogsUnreadableError."""
        key = (str(document.get("name")), selection.attempt, selection.host)

        def made() -> LogReader:
            return LogReader(JobLogs(self._make_client(), selection))

        reader: LogReader = self._kept(self._logs, key, made)
        with reader.using:
            reader.look(document, now=self._monotonic())
            return reader.answer(after)

    def curves(self, document: Document) -> Document:
        """Raises LogsUnreadableError."""

        def made() -> CurveReader:
            return CurveReader(JobLogs(self._make_client(), Selection(host=FIRST_HOST)))

        reader: CurveReader = self._kept(self._curves, str(document.get("name")), made)
        with reader.using:
            reader.look(document, now=self._monotonic())
            return reader.answer()

    def _kept(self, readers: "OrderedDict[Any, Any]", key: object, made: Callable[[], Any]) -> Any:  # noqa: ANN401
        with self._choosing:
            if key not in readers:
                readers[key] = made()
            readers.move_to_end(key)
            while len(readers) > MOST_READERS:
                readers.popitem(last=False)
            return readers[key]


def selection_of(given: Mapping[str, str]) -> Selection:
    """Read a query's ``attempt`` and ``host``; an attempt that is not a number selects all attempts."""
    attempt, host = given.get("attempt", ""), given.get("host", "")
    return Selection(
        attempt=int(attempt) if attempt.isdecimal() and attempt.isascii() else None,
        host=host or None,
        tail=TAIL_LINES,
    )
