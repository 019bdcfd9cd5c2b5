"""Lines that a function writes: into CloudWatch Logs, and into a file of the state folder for debugging."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.clock import TwinClock
from local.sagemaker.ports import LogLine, LogSink


@dataclass(slots=True, kw_only=True)
class FunctionLog:
    """The log of one process of a function, written by the one thread that reads its output."""

    group: str
    stream: str
    sink: LogSink | None
    """None when the function's role may not write there: then AWS keeps nothing either."""
    read: Callable[[str], None]
    """Takes each line that AWS keeps."""
    clock: TwinClock
    file: Path
    _rest: bytes = b""

    def write(self, output: bytes) -> None:
        """Take output as it comes; a line is kept when its end has come."""
        *lines, self._rest = (self._rest + output).split(b"\n")
        self._keep([line.decode(errors="replace") for line in lines if line])

    def end(self) -> None:
        """Keep an unfinished line, as the process has ended."""
        if self._rest:
            self._keep([self._rest.decode(errors="replace")])
            self._rest = b""

    def _keep(self, lines: list[str]) -> None:
        if not lines:
            return
        with self.file.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        if self.sink is not None:
            at = int(self.clock.now().timestamp() * 1000)
            self.sink.put(self.group, self.stream, [LogLine(timestamp_ms=at, message=line) for line in lines])
            for line in lines:
                self.read(line)
