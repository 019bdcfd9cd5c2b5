"""Runs a training in this process, stopped by SIGTERM at a place, and the attempt after it."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Line = tuple[Any, ...]
"""What a training said of a step or an evaluation: (kind, number, values...)."""


@dataclass(kw_only=True)
class Stop:
    """Where SIGTERM comes: in step ``at``, or in batch ``at`` of all evaluations."""

    kind: Literal["step", "evaluation"]
    at: int

    def __str__(self) -> str:
        return f"{self.kind} {self.at}"


@dataclass(kw_only=True)
class Said:
    """One attempt's lines, and the stop that it is to send itself."""

    stop: Stop | None = None
    lines: list[Line] = field(default_factory=list)
    batches: int = 0

    def step(self, number: int) -> None:
        """Say that this step has begun."""
        self._send("step", number)

    def batch_of_evaluation(self) -> None:
        self.batches += 1
        self._send("evaluation", self.batches)

    def _send(self, kind: str, at: int) -> None:
        if self.stop is not None and (self.stop.kind, self.stop.at) == (kind, at):
            self.stop = None
            os.kill(os.getpid(), signal.SIGTERM)


Training = Callable[[Path, Said], None]


def attempt(training: Training, folder: Path, stop: Stop | None = None) -> tuple[int, Said]:
    """Run it to its end or to its exit; (exit code, what it said)."""
    said, before = Said(stop=stop), signal.getsignal(signal.SIGTERM)
    try:
        training(folder, said)
    except SystemExit as end:
        return int(str(end.code)), said
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0, said


def lines_of_two_attempts(training: Training, folder: Path, stop: Stop) -> list[Line]:
    """Stop it, run it again to its end; the lines of both."""
    code, first = attempt(training, folder, stop)
    assert code == 143, first.lines
    code, second = attempt(training, folder)
    assert code == 0, second.lines
    return first.lines + second.lines
