"""Looking at a twin until something is so, seldom: many processes are at work beside it."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.5


def eventually(look: Callable[[], T], holds: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds(found := look()):
        assert time.monotonic() < deadline, f"still: {found}"
        time.sleep(PAUSE_SECONDS)
    return found
