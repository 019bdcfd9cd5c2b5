"""When the next checkpoint is due: seldom enough to be cheap, often enough to lose little."""

_SHORTEST_SECONDS = 60.0
_STALLS = 20
"""An interval is at least this many times what a save holds training up, which then costs 5 % at most."""


def next_interval(stall_seconds: float) -> float:
    """Seconds from one save to the next."""
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
