"""What the host's clock says between two metric lines: steps, waits for data, saves that held them up."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from training.goodput import Goodput


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """Means over the steps since the lap before."""

    step_seconds: float
    data_seconds: float


class Meter:
    """Made before the first step of an attempt.

    A step lasts from the end of the one before it to its own, as the host sees it: on a GPU the host runs
    ahead, and at each metric line it has waited for the device.

    Args:
        carried: What the loaded checkpoint carried; None: there was none.
    """

    def __init__(
        self,
        carried: Mapping[str, float] | None,
        *,
        clock: Callable[[], float] = time.perf_counter,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._goodput = Goodput.resumed(carried, now=wall_clock())
        self._marked_at = clock()
        self._held = self._seconds = self._data_seconds = 0.0
        self._steps = 0
        self.checkpoint_stall = 0.0

    def waited(self, seconds: float) -> None:
        """For data, in this step."""
        self._data_seconds += seconds

    def held_up(self, seconds: float) -> None:
        """By a save."""
        self._held += seconds
        self.checkpoint_stall = seconds

    def step_done(self) -> None:
        seconds = self._since_mark()
        self._steps += 1
        self._seconds += seconds
        self._goodput = self._goodput.after_step(seconds)

    def lap(self) -> Lap:
        """Of the steps since the last call; to be called when the device has done them."""
        waited = self._since_mark()
        self._goodput = self._goodput.longer(waited)
        steps = max(1, self._steps)
        lap = Lap(step_seconds=(self._seconds + waited) / steps, data_seconds=self._data_seconds / steps)
        self._steps, self._seconds, self._data_seconds = 0, 0.0, 0.0
        return lap

    def _since_mark(self) -> float:
        now = self._clock()
        seconds = now - self._marked_at - self._held
        self._marked_at, self._held = now, 0.0
        return seconds

    def goodput(self) -> float:
        return self._goodput.share(self._wall_clock())

    def carried(self) -> dict[str, float]:
        """For the checkpoint that is saved now."""
        return self._goodput.carried()
