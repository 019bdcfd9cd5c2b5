"""Places the marks of an axis: shares of its length, and what stands beside them."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_NICE = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_STEPS_H = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672)
_DAY_H = 24
_LOG_STEPS = (
    ("≤10s", 10),
    ("1m", 60),
    ("10m", 600),
    ("1h", 3600),
    ("6h", 6 * 3600),
    ("1d", 86400),
    ("7d", 7 * 86400),
    ("28d", 28 * 86400),
)
SHORTEST_S = 10
"""A logarithmic axis begins here."""


class Tick(NamedTuple):
    share: float
    label: str


def nice_top(value: float) -> float:
    """Return a round number that is not below the value."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in _NICE if step * size >= value * 0.999)


def value_ticks(top: float) -> list[Tick]:
    """Mark nothing, half and all."""
    return [Tick(share, f"{share * top:,g}") for share in (0, 0.5, 1)]


def time_ticks(begins: datetime, length_s: int, *, most: int = 6) -> list[Tick]:
    """Mark round hours or midnights, UTC."""
    start = begins.astimezone(UTC)
    step_h = next((step for step in _STEPS_H if step * 3600 * most >= length_s), _STEPS_H[-1])
    return list(_time_ticks(start, length_s, timedelta(hours=step_h)))


def _time_ticks(start: datetime, length_s: int, step: timedelta) -> Iterator[Tick]:
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + math.ceil((start - midnight) / step) * step
    wanted = "%a %d %b" if step >= timedelta(hours=_DAY_H) else "%a %H:%M"
    while (share := (at - start).total_seconds() / length_s) <= 1:
        yield Tick(share, at.strftime(wanted))
        at += step


class LogAxis:
    """Times from ten seconds on, a tenfold always as wide."""

    def __init__(self, longest_s: float) -> None:
        self._top = max(longest_s, 10 * SHORTEST_S)

    def share(self, seconds: float) -> float:
        """Return the place on the axis, 0 to 1; what never ends is at its end."""
        if math.isinf(seconds):
            return 1.0
        return min(1.0, math.log(max(seconds, SHORTEST_S) / SHORTEST_S) / math.log(self._top / SHORTEST_S))

    def ticks(self) -> list[Tick]:
        return [Tick(self.share(seconds), label) for label, seconds in _LOG_STEPS if seconds <= self._top]
