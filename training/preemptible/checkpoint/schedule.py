"""When the next checkpoint is due, whether one more fits before the end, and which are kept."""

from collections.abc import Collection
from dataclasses import dataclass

_SAFETY = 1.5
"""The last save may be slower than the one that was measured."""
_FIXED_SECONDS = 5.0
"""Agreeing, copying to the CPU, the manifest."""
_UNKNOWN_BYTES_PER_SECOND = 100e6
"""Where nothing was measured yet. A gp2 volume writes 128 to 250 MB/s (Amazon EBS user guide)."""
_SHORTEST_SECONDS = 60.0
_STALLS = 20
"""An interval is at least this many times what a save holds training up, which then costs 5 % at most."""


def seconds_needed(bytes_on_host: float, *, bytes_per_second: float | None) -> float:
    """For one blocking save, by the speed that a host wrote an earlier one with."""
    speed = bytes_per_second or _UNKNOWN_BYTES_PER_SECOND
    return bytes_on_host / speed * _SAFETY + _FIXED_SECONDS


def next_interval(stall_seconds: float) -> float:
    """Seconds from one save to the next: seldom enough to be cheap, often enough to lose little."""
    return max(_SHORTEST_SECONDS, _STALLS * stall_seconds)


class SaveTimer:
    """Seconds of one clock go in. Ask it on one rank and let the others know: clocks differ."""

    def __init__(self, now: float) -> None:
        self._saved_at, self._stall = now, 0.0

    def due(self, now: float) -> bool:
        return now - self._saved_at >= next_interval(self._stall)

    def saved(self, now: float, *, stall_seconds: float) -> None:
        """A save returned just now, after it held training up for this long."""
        self._saved_at, self._stall = now, stall_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which checkpoints are kept."""

    newest: int = 2
    """So many of the newest; two, so that a newest one that is lost on its way leaves one to go back to."""
    every: int = 0
    """And those whose step divides by it; 0: no others."""

    def __post_init__(self) -> None:
        if self.newest < 1 or self.every < 0:
            raise ValueError(f"keep at least one checkpoint, and every 0 or more: {self}")


def kept(steps: Collection[int], keep: Retention) -> set[int]:
    """Of these whole checkpoints."""
    newest = sorted(steps, reverse=True)[: keep.newest]
    return {*newest, *(step for step in steps if keep.every and step % keep.every == 0)}
