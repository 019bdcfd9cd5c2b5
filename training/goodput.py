"""Goodput: of the time since a job first started, the share spent in steps that lasted.

What an attempt adds travels in its checkpoints. So time whose steps were lost is in no checkpoint, and
steps that are trained again count once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

_STARTED, _PRODUCTIVE = "goodput_started_at", "goodput_productive_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    started_at: float
    """Unix time of the first attempt's start."""
    productive: float = 0.0
    """Seconds in steps, up to here, whose work is not lost."""
    steps: int = 0
    """Of this attempt."""
    first: float = 0.0
    """Seconds of this attempt's first step."""

    @classmethod
    def resumed(cls, carried: Mapping[str, float] | None, *, now: float) -> Self:
        """From what the checkpoint carried; None: there is none, the job starts ``now`` (Unix time).

        An attempt that left no checkpoint leaves no start either.
        """
        carried = carried or {}
        return cls(started_at=carried.get(_STARTED, now), productive=carried.get(_PRODUCTIVE, 0.0))

    def after_step(self, seconds: float) -> Self:
        """``seconds`` without the time that a checkpoint held it up.

        The first step of an attempt also warms up and compiles; it counts as much as the second, at most.
        """
        if not self.steps:
            return replace(self, steps=1, first=seconds)
        counted = seconds + (min(self.first, seconds) if self.steps == 1 else 0.0)
        return replace(self, steps=self.steps + 1, productive=self.productive + counted)

    def longer(self, seconds: float) -> Self:
        """The device was still at work on the steps so far when the host was done with them."""
        return replace(self, productive=self.productive + seconds)

    def share(self, now: float) -> float:
        """Between 0 and 1; 0 before any time has passed."""
        elapsed = now - self.started_at
        return min(1.0, self.productive / elapsed) if elapsed > 0 else 0.0

    def carried(self) -> dict[str, float]:
        """What the next checkpoint must carry."""
        return {_STARTED: self.started_at, _PRODUCTIVE: self.productive}
