"""Lines that a function writes: into CloudWatch Logs, and into a file of the state folder for debugging."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.clock import TwinClock


@dataclass(slots=True, kw_only=True)
class FunctionLog:
    """The log of one process of a function."""

    group: str
    stream: str
    client: Any
    """CloudWatch Logs; None when the function's role may not write there: then AWS keeps nothing either."""
    clock: TwinClock
    file: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _has_stream: bool = False

    def write(self, lines: list[str]) -> None:
        with self._lock:
            with self.file.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            if self.client is not None:
                self._put(lines)

    def _put(self, lines: list[str]) -> None:
        if not self._has_stream:
            self.client.create_log_stream(logGroupName=self.group, logStreamName=self.stream)
            self._has_stream = True
        at = int(self.clock.now().timestamp() * 1000)
        events = [{"timestamp": at, "message": line} for line in lines]
        self.client.put_log_events(logGroupName=self.group, logStreamName=self.stream, logEvents=events)
