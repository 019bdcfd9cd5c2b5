"""Goodput: the share of the time since a job first started that it spent in steps that lasted.

What an attempt adds travels in its checkpoints. So time whose steps were lost is in no checkpoint, and
steps that are trained again count once.
"""

import math
import re
import time
from collections import ChainMap, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

_RECENT = 5
"""How many of the last steps predict the next one: a step that compiles, or waits for a slow host, is soon
forgotten."""
_STARTED, _PRODUCTIVE = "goodput_started_at", "goodput_productive_seconds"
_AT_WIDTH = re.compile(r"width_([1-9][0-9]*)_(steps|seconds)")
"""Names under which a checkpoint carries what the job trained at each width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    started_at: float
    """Unix time of the first attempt's start."""
    productive: float = 0.0
    """Seconds in steps, up to here, whose work is not lost."""
    steps: int = 0
    """Steps of this attempt."""
    first: float = 0.0
    """Seconds of this attempt's first step."""

    @classmethod
    def resumed(cls, carried: Mapping[str, float] | None, *, now: float) -> Self:
        """Continue from what the checkpoint carried.

        None if there is none, and the job starts ``now`` (Unix time).

        An attempt that left no checkpoint leaves no start either.
        """
        carried = carried or {}
        return cls(started_at=carried.get(_STARTED, now), productive=carried.get(_PRODUCTIVE, 0.0))

    def after_step(self, seconds: float) -> Self:
        """Count a step of this many ``seconds``, without the time that a checkpoint held it up.

        The first step of an attempt also warms up and compiles; it counts as much as the second, at most.
        """
        if not self.steps:
            return replace(self, steps=1, first=seconds)
        counted = seconds + (min(self.first, seconds) if self.steps == 1 else 0.0)
        return replace(self, steps=self.steps + 1, productive=self.productive + counted)

    def longer(self, seconds: float) -> Self:
        """Add the seconds for which the device still worked on the steps when the host was done with them."""
        return replace(self, productive=self.productive + seconds)

    def share(self, now: float) -> float:
        """Return the goodput ``now`` (Unix time), between 0 and 1; 0 before any time has passed."""
        elapsed = now - self.started_at
        return min(1.0, self.productive / elapsed) if elapsed > 0 else 0.0

    def carried(self) -> dict[str, float]:
        """Return what the next checkpoint must carry."""
        return {_STARTED: self.started_at, _PRODUCTIVE: self.productive}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """Means in seconds over the steps since the lap before."""

    step_seconds: float
    data_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthTime:
    """Steps that a job trained with a number of instances, and the seconds that they took."""

    width: int
    """Instances of the attempts that trained them."""
    steps: int = 0
    seconds: float = 0.0

    def carried(self) -> dict[str, float]:
        """Return what the next checkpoint must carry."""
        return {f"width_{self.width}_steps": self.steps, f"width_{self.width}_seconds": self.seconds}


def _widths_of(carried: Mapping[str, float]) -> dict[int, WidthTime]:
    """Read the steps and seconds by width from what a checkpoint carried."""
    times: dict[int, WidthTime] = {}
    for name, value in carried.items():
        if match := _AT_WIDTH.fullmatch(name):
            width = int(match[1])
            before = times.get(width, WidthTime(width=width))
            is_steps = match[2] == "steps"
            times[width] = replace(before, steps=int(value)) if is_steps else replace(before, seconds=value)
    return times


class Meter:
    """Measures the steps of an attempt. Make it before the first of them.

    A step lasts from the end of the one before it to its own, as the host sees it: on a GPU the host runs
    ahead, and at each metric line it has waited for the device.

    Args:
        carried: Values that the loaded checkpoint carried; None if there was none.
        width: Instances that train in this attempt.
    """

    def __init__(
        self,
        carried: Mapping[str, float] | None,
        *,
        width: int = 1,
        clock: Callable[[], float] = time.perf_counter,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._goodput = Goodput.resumed(carried, now=wall_clock())
        self._width, self._at_widths = width, _widths_of(carried or {})
        self._marked_at = clock()
        self._held = self._seconds = self._data_seconds = 0.0
        self._steps = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self.checkpoint_stall = 0.0

    def data_arrived(self) -> None:
        """Count the time of this step so far as waiting for its data."""
        self._data_seconds += self._clock() - self._marked_at - self._held

    def held_up(self, seconds: float) -> None:
        """Leave out the seconds for which a save held the step up."""
        self._held += seconds
        self.checkpoint_stall = seconds

    def paused(self, seconds: float) -> None:
        """Leave out seconds spent on something else than steps and saves; no step's time has them."""
        self._held += seconds

    def step_done(self) -> None:
        seconds = self._since_mark()
        self._steps += 1
        self._seconds += seconds
        self._recent.append(seconds)
        productive = self._goodput.productive
        self._goodput = self._goodput.after_step(seconds)
        self._count_at_width(self._goodput.productive - productive, steps=1)

    @property
    def longest_step(self) -> float:
        """Return the seconds of the longest of the last few steps; infinite before there is one."""
        return max(self._recent, default=math.inf)

    def lap(self) -> Lap:
        """Return the means of the steps since the last call; call it when the device has done them."""
        waited = self._since_mark()
        self._goodput = self._goodput.longer(waited)
        self._count_at_width(waited, steps=0)
        steps = max(1, self._steps)
        if self._recent:
            self._recent[-1] += waited
        lap = Lap(step_seconds=(self._seconds + waited) / steps, data_seconds=self._data_seconds / steps)
        self._steps, self._seconds, self._data_seconds = 0, 0.0, 0.0
        return lap

    def _count_at_width(self, seconds: float, *, steps: int) -> None:
        before = self._at_widths.get(self._width, WidthTime(width=self._width))
        self._at_widths[self._width] = replace(
            before, steps=before.steps + steps, seconds=before.seconds + seconds
        )

    def by_width(self) -> list[WidthTime]:
        """Return what lasted of the job's steps and seconds, over all attempts, at each width, ascending."""
        return [at_width for _, at_width in sorted(self._at_widths.items())]

    def _since_mark(self) -> float:
        now = self._clock()
        seconds = now - self._marked_at - self._held
        self._marked_at, self._held = now, 0.0
        return seconds

    def goodput(self) -> float:
        return self._goodput.share(self._wall_clock())

    def carried(self) -> dict[str, float]:
        """Return what the checkpoint that is saved now must carry."""
        at_widths = (at_width.carried() for at_width in self._at_widths.values())
        return dict(ChainMap(*at_widths, self._goodput.carried()))
