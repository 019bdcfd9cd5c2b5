"""The progress line, from which the queue reads how far a job is and how fast it trains at a width.

`progress step=120 steps=1000 width=4 step_ms=345.6`: the last step done of those of the whole job, instances
of this attempt, and the mean time of a step since the line before. It does not import torch.
"""

import os
import time
from collections.abc import Callable, Mapping

_EVERY_SECONDS = 30.0
"""Seconds between two lines at least: the queue reads them every few minutes."""


def width(env: Mapping[str, str] = os.environ) -> int:
    """Return the instances that train in this attempt, as `launch.py` or torchrun tell; 1 without either."""
    if (counted := env.get("TRAINMASTER_WIDTH", "")).isdecimal():
        return int(counted)
    ranks, of_a_host = (env.get(name, "1") for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return max(1, int(ranks) // int(of_a_host))


class Progress:
    """Prints the progress of an attempt. Make it before the first step, on the rank that prints alone.

    Args:
        step: The last step done before this attempt.
        width: Instances that train in this attempt.
        clock: Returns seconds, monotonic.
    """

    def __init__(self, step: int, *, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._step, self._width, self._clock = step, width, clock
        self._since: float | None = None

    def reached(self, step: int, steps: int | None) -> None:
        """Call after each step; ``steps`` are those of the whole job, None or 0 if it has no known end.

        The first step of an attempt is not measured: it may compile, and waits for the first data.
        """
        now = self._clock()
        if self._since is None:
            self._step, self._since = step, now
        elif now - self._since >= _EVERY_SECONDS and step > self._step:
            step_ms = 1000 * (now - self._since) / (step - self._step)
            known = f" steps={steps}" if steps else ""
            print(f"progress step={step}{known} width={self._width} step_ms={step_ms:.1f}", flush=True)
            self._step, self._since = step, now
