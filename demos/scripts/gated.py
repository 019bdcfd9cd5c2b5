"""Runs a script whose data comes from a place that the story can close. Needs the standard library alone.

The scripts of docs/examples sleep before each sample, as if they read it from a slow place. Here that wait
lasts until the file says that so many samples may be read: no script gets further than the story wants.
"""

import itertools
import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path

GATE_VARIABLE, PROGRAM_VARIABLE = "DEMO_GATE", "DEMO_PROGRAM"
_LOOK_SECONDS = 0.05


def gated_sleep(gate: Path, *, pause: Callable[[float], None] = time.sleep) -> Callable[[float], None]:
    """Give what stands for time.sleep: the n-th call returns when the file allows n, or is not there."""
    calls = itertools.count(1)

    def sleep(_seconds: float) -> None:
        number = next(calls)
        while number > _allowed(gate):
            pause(_LOOK_SECONDS)

    return sleep


def _allowed(gate: Path) -> float:
    try:
        return int(gate.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return float("inf")


if __name__ == "__main__":
    time.sleep = gated_sleep(Path(os.environ[GATE_VARIABLE]))  # type: ignore[assignment]
    runpy.run_path(os.environ[PROGRAM_VARIABLE], run_name="__main__")
