"""Implement LogReader over CloudWatch Logs, where SageMaker writes what a training job's hosts print."""

import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

# Group and streams, ``<training job>/algo-<number>-<epoch>``: SageMaker developer guide, "CloudWatch Logs for
# Amazon SageMaker AI".
GROUP = "/aws/sagemaker/TrainingJobs"
MAX_STREAMS = 10
MAX_LINES = 200
MAX_BYTES = 64 * 1024
MAX_SECONDS = 3.0
_MAX_PAGE = 50  # streams on a page at most: CloudWatch Logs API reference, DescribeLogStreams
_LONG_LINE = 4096
_FAILURES = (ClientError, BotoCoreError)


class CloudWatchLogs:
    """Reads ends of logs. Its client needs short timeouts: the time is checked between its calls."""

    def __init__(self, connect: Callable[[], Any], *, seconds: Callable[[], float] = time.monotonic) -> None:
        """``connect`` makes the client at the first failed job: most calls of the function never need it."""
        self._connect = connect
        self._seconds = seconds

    def tail(self, training_job_name: str) -> tuple[str, ...]:
        """Return the last lines of the newest streams: at most 200 lines and 64 KB, within 3 s. Never raises.

        Each stream gives an equal share: if one host fails, the others fill their logs with what follows.
        """
        deadline = self._seconds() + MAX_SECONDS
        streams = self._newest_streams(training_job_name)
        lines = [
            timed
            for stream in streams
            if self._seconds() < deadline
            for timed in _last(self._events(stream), share=len(streams))
        ]
        return tuple(text for _, text in sorted(lines, key=lambda timed: timed[0]))

    @cached_property
    def _client(self) -> Any:
        return self._connect()

    def _newest_streams(self, training_job_name: str) -> list[str]:
        """List the newest streams; a restarted host has a new one. Only the first 50 by name are read."""
        try:
            page = self._client.describe_log_streams(
                logGroupName=GROUP, logStreamNamePrefix=f"{training_job_name}/", limit=_MAX_PAGE
            )
        except _FAILURES:
            return []
        newest = sorted(page["logStreams"], key=_written_at, reverse=True)[:MAX_STREAMS]
        return [stream["logStreamName"] for stream in newest]

    def _events(self, stream: str) -> list[dict[str, Any]]:
        try:
            answer = self._client.get_log_events(
                logGroupName=GROUP, logStreamName=stream, limit=MAX_LINES, startFromHead=False
            )
        except _FAILURES:
            return []
        events: list[dict[str, Any]] = answer["events"]
        return events


def _written_at(stream: dict[str, Any]) -> int:
    """Return when a stream was last written to, in ms.

    CloudWatch Logs updates ``lastEventTimestamp`` late and ``creationTime`` at once, so the later one counts.
    """
    return max(int(stream.get("creationTime", 0)), int(stream.get("lastEventTimestamp", 0)))


def _last(events: list[dict[str, Any]], *, share: int) -> list[tuple[int, str]]:
    """Return time in ms and text of the last lines, the oldest first."""
    kept: list[tuple[int, str]] = []
    lines_left, bytes_left = MAX_LINES // share, MAX_BYTES // share
    for at, line in _backwards(events):
        lines_left -= 1
        bytes_left -= len(line.encode("utf-8", errors="replace"))
        if lines_left < 0 or bytes_left < 0:
            break
        kept.append((at, line))
    return kept[::-1]


def _backwards(events: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    for event in reversed(events):
        for line in reversed(event["message"].split("\n")):
            # A progress bar overwrites itself: what stands behind the last return is what people see.
            seen = line.rstrip("\r").rpartition("\r")[2]
            if seen.strip():
                yield event["timestamp"], _cut(seen)


def _cut(line: str) -> str:
    """Keep the head and the tail of a long line."""
    if len(line) <= _LONG_LINE:
        return line
    half = _LONG_LINE // 2
    return f"{line[:half]} ... {line[-half:]}"
