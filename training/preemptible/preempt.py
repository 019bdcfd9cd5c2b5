"""Stops that SIGTERM asks for. It does not import torch: the signal may come before torch is loaded.

``StopRequest`` remembers the signal, ``agreement`` makes all ranks leave after the same step.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

EXIT_PREEMPTED = 128 + signal.SIGTERM
"""Exit code of a program that SIGTERM ended: a job that is not finished must not look finished."""
STOP_SECONDS = 110.0
"""Seconds from SIGTERM to the exit. SageMaker kills after 120 s (API reference, StopTrainingJob)."""


class StopRequest:
    """SIGTERM, remembered until a step is done. Use: ``with StopRequest() as stop``.

    Args:
        seconds: Time from the first signal until the program must have left.
        clock: Returns seconds, monotonic.
    """

    def __init__(self, *, seconds: float = STOP_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._asked_at: float | None = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._ask)
        return self

    def listen(self) -> None:
        """Take the signal again, from a handler that was put in place since."""
        signal.signal(signal.SIGTERM, self._ask)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    @contextmanager
    def ends_at_once(self) -> Iterator[None]:
        """Let SIGTERM end the process within the block, whose waits would not notice it.

        Nothing is at stake yet.

        Raises:
            SystemExit: SIGTERM came before the block.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self.asked:
            print("stopped on SIGTERM before the first step", flush=True)
            raise SystemExit(EXIT_PREEMPTED)
        yield
        signal.signal(signal.SIGTERM, self._ask)

    @property
    def asked(self) -> bool:
        return self._asked_at is not None

    @property
    def seconds_since(self) -> float:
        """Return the seconds since the first signal; 0 before it."""
        return 0.0 if self._asked_at is None else self._clock() - self._asked_at

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked_at is None:
            self._asked_at = self._clock()
