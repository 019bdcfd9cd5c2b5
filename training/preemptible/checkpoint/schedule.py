"""When the next checkpoint is due, and whether one more fits before the end."""

_SAFETY = 1.5
"""Factor on the estimate: the last save may be slower than the one that was measured."""
_FIXED_SECONDS = 5.0
"""Seconds of a save that do not grow with its size: agreeing, copying to the CPU, the manifest."""
_UNKNOWN_BYTES_PER_SECOND = 100e6
"""Assumed where nothing was measured yet. A gp2 volume writes 128 to 250 MB/s (Amazon EBS user guide)."""
_SHORTEST_SECONDS = 60.0
_STALLS = 20
"""An interval is at least this many times what a save holds training up, which then costs 5 % at most."""


def seconds_needed(bytes_on_host: float, *, bytes_per_second: float | None) -> float:
    """Estimate the seconds of one blocking save, by the speed of a host in an earlier one; None: none yet."""
    speed = bytes_per_second or _UNKNOWN_BYTES_PER_SECOND
    return bytes_on_host / speed * _SAFETY + _FIXED_SECONDS


def next_interval(stall_seconds: float) -> float:
    """Seconds from one save to the next: seldom enough to be cheap, often enough to lose little."""
    return max(_SHORTEST_SECONDS, _STALLS * stall_seconds)


class SaveTimer:
    """Tells when a save is due, by seconds of one clock.

    Ask it on one rank and let the others know: clocks differ.
    """

    def __init__(self, now: float) -> None:
        self._saved_at, self._stall = now, 0.0

    def due(self, now: float) -> bool:
        return now - self._saved_at >= next_interval(self._stall)

    def saved(self, now: float, *, stall_seconds: float) -> None:
        """Record that a save returned just now, after it held training up for this long."""
        self._saved_at, self._stall = now, stall_seconds
