"""Holds a training after a step, so that a demonstration can do something to it just then.

How fast a machine is says nothing about which of two jobs gets somewhere first. A job that is held gets no
further than the story wants, on any machine, and still hears SIGTERM there.
"""

import time
from collections.abc import Callable
from pathlib import Path

_LOOK_SECONDS = 0.05


def last_step_allowed(file: Path) -> float:
    """Read the last step that may be trained; infinite where the file is not there or has no number."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return float("inf")


def wait_for(
    step: int, file: str, *, is_over: Callable[[], bool], pause: Callable[[float], None] = time.sleep
) -> float:
    """Return when the file allows this step, or ``is_over`` says that it is no longer wanted.

    Returns:
        The seconds of the wait.
    """
    began = time.perf_counter()
    while step > last_step_allowed(Path(file)) and not is_over():
        pause(_LOOK_SECONDS)
    return time.perf_counter() - began
