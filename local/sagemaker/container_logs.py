"""A container's output as lines in CloudWatch Logs, while it runs."""

import codecs
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import datetime

from local.sagemaker.ports import LogLine, LogSink

logger = logging.getLogger(__name__)

LOG_GROUP = "/aws/sagemaker/TrainingJobs"

_LONGEST_LINE_BYTES = 256 * 1024 - 26
"""A longer line is cut into several. Source: CloudWatch Logs quotas, event size with its overhead."""
_BATCH_BYTES = 1024 * 1024
_BATCH_LINES = 10_000
_OVERHEAD_BYTES = 26
"""Source of these three: CloudWatch Logs API reference, PutLogEvents."""

_FLUSH_SECONDS = 0.25
"""Real time that lines wait for others to go with them."""
_MOST_WAITING_LINES = 20_000
"""A container that prints faster than this can be kept waits, as it does on a full pipe."""


class LogStream:
    """A log stream. ``write`` takes output as it comes, ``close`` returns when everything is kept."""

    def __init__(self, name: str, sink: LogSink, now: Callable[[], datetime]) -> None:
        self._name = name
        self._sink = sink
        self._now = now
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._lines: list[LogLine] = []
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log-stream", daemon=True)
        self._thread.start()

    def write(self, output: bytes) -> None:
        """Write output, from one thread at a time. The end of an unfinished line waits for its next part."""
        *whole, self._rest = (self._rest + self._decoder.decode(output)).split("\n")
        if len(self._rest) > _LONGEST_LINE_BYTES:
            whole.append(self._rest)
            self._rest = ""
        self._add(whole)

    def close(self) -> None:
        self._add([self._rest])
        self._rest = ""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _add(self, texts: list[str]) -> None:
        """Queue lines; empty ones are left out, as CloudWatch has none."""
        timestamp_ms = round(self._now().timestamp() * 1000)
        lines = [
            LogLine(timestamp_ms=timestamp_ms, message=piece)
            for text in texts
            for piece in _pieces(text.rstrip("\r"))
        ]
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._lines) < _MOST_WAITING_LINES)
            if not self._is_closed:
                self._lines += lines
            self._changed.notify_all()

    def _run(self) -> None:
        while lines := self._take():
            for batch in _batches(lines):
                try:
                    self._sink.put(LOG_GROUP, self._name, batch)
                except Exception:  # the bulkhead of the log: lost lines must not stop a job
                    logger.exception("lines of %s are lost", self._name)

    def _take(self) -> list[LogLine]:
        """Return the lines that wait; none if the stream is closed and all are kept."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._is_closed)
            self._changed.wait_for(lambda: self._is_closed, _FLUSH_SECONDS)
            lines, self._lines = self._lines, []
            self._changed.notify_all()
            return lines


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in parts short enough as UTF-8, no character cut in two."""
    rest = text.encode()
    while rest:
        piece = rest[:_LONGEST_LINE_BYTES].decode("utf-8", "ignore")
        yield piece
        rest = rest[len(piece.encode()) :]


def _batches(lines: list[LogLine]) -> Iterator[list[LogLine]]:
    batch: list[LogLine] = []
    size = 0
    for line in lines:
        line_size = len(line.message.encode()) + _OVERHEAD_BYTES
        if batch and (size + line_size > _BATCH_BYTES or len(batch) == _BATCH_LINES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line_size
    if batch:
        yield batch
