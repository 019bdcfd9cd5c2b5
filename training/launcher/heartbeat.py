"""What a rank is doing, for the watchdog of the launcher that started it. No torch here.

A file of a few bytes in the memory of the host, replaced in place: some microseconds a step. The format is
read in ``watchdog.py``.
"""

import os
from collections.abc import Mapping

from training.launcher.watchdog import IN_STEP

VARIABLE = "LAUNCH_HEARTBEAT"
"""The file; the launcher sets it for each rank. Without it nothing is written."""
WAITS_FOR_DATA, BETWEEN_STEPS = "data", "between"
"""Only a step is judged by its time; between steps are start, evaluation, save and end."""


class Heartbeat:
    def __init__(self, env: Mapping[str, str], *, hang_seconds: float = 0.0) -> None:
        """``hang_seconds``: without any progress, until the rank counts as hanging; 0: the launcher's own."""
        path = env.get(VARIABLE)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) if path else None
        self._hang_seconds = hang_seconds
        self._step = 0

    def begins(self, step: int) -> None:
        self._step = step
        self._beat(IN_STEP)

    def waits_for_data(self) -> None:
        self._beat(WAITS_FOR_DATA)

    def has_data(self) -> None:
        self._beat(IN_STEP)

    def ends(self) -> None:
        """The step."""
        self._beat(BETWEEN_STEPS)

    def _beat(self, doing: str) -> None:
        if self._file is not None:  # of one length, so that no part of a longer one stays behind
            os.pwrite(self._file, f"{doing:<8} {self._step:>12} {self._hang_seconds:>12g}\n".encode(), 0)
