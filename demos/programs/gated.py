"""Runs a script that the story can hold. It needs the standard library alone.

Each script calls ``time.sleep(0)`` before a sample or a step. Here that lasts until a file says that so many
may begin: no script gets further than the story wants. The first wait is printed, so that the story knows
where the script is held. Longer sleeps are those of libraries, and stay what they are.
"""

import itertools
import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path

GATE_VARIABLE, PROGRAM_VARIABLE = "DEMO_GATE", "DEMO_PROGRAM"
WAITS = "the demo holds this rank"
_LOOK_SECONDS = 0.05


def gated_sleep(gate: Path, *, pause: Callable[[float], None] = time.sleep) -> Callable[[float], None]:
    """Make a stand-in for time.sleep: the n-th call with 0 returns when the file allows n, or is gone."""
    calls = itertools.count(1)
    waits = itertools.count()

    def sleep(seconds: float) -> None:
        if seconds > 0:
            pause(seconds)
            return
        number = next(calls)
        if number > _allowed(gate) and next(waits) == 0:
            print(f"{WAITS}\n", end="", flush=True)
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
