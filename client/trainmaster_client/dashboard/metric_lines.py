"""The numbers that a training program prints line by line, as points of curves. Pure.

A metric line is ``metric step=120 loss=2.345 tok_s=9843.1``; of other programs a line with a step and a loss
will do, such as ``step 1200 loss 2.31`` or ``{'loss': 2.31, 'step': 1200}``.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MARK = "metric "
STEP = "step"
MOST_POINTS = 1000
"""Points kept of one attempt: more than a screen has columns for."""
_PAIR = re.compile(r"([A-Za-z_]\w{0,39})=(\S{1,40})")
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf)"
_LOOSE = {
    STEP: re.compile(rf"(?i)\b(?:global_?)?step['\"]?\s*[=: ]\s*{_NUMBER}"),
    "loss": re.compile(rf"(?i)\b(?:train_?)?loss['\"]?\s*[=: ]\s*{_NUMBER}"),
}
_LONGEST_LINE = 2000
"""Characters; what is longer is no line of numbers."""


def numbers(text: str) -> Mapping[str, float]:
    """Return a line's finite numbers by name, with ``step``; empty if the line has none."""
    if len(text) > _LONGEST_LINE:
        return {}
    values = dict(_marked(text.removeprefix(MARK)) if text.startswith(MARK) else _loose(text))
    return values if STEP in values and len(values) > 1 else {}


def _marked(text: str) -> Iterator[tuple[str, float]]:
    for name, value in _PAIR.findall(text):
        number = _finite(value)
        if number is not None:
            yield name, number


def _loose(text: str) -> Iterator[tuple[str, float]]:
    for name, pattern in _LOOSE.items():
        match = pattern.search(text)
        number = _finite(match.group(1)) if match else None
        if number is not None:
            yield name, number


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(slots=True)
class Curve:
    """Points of one attempt in the order of their lines; of too many every second one is let go."""

    points: list[Mapping[str, float]] = field(default_factory=list)
    every: int = 1
    """Number of lines of which one is kept."""
    _seen: int = 0

    def add(self, point: Mapping[str, float]) -> None:
        if self._seen % self.every == 0:
            self.points.append(point)
        self._seen += 1
        if len(self.points) > 2 * MOST_POINTS:
            self.points = self.points[::2]
            self.every *= 2
