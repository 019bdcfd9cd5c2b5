"""Widths of an elastic job: the instance counts that it may run with, as people write them."""

import re
from dataclasses import dataclass

from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.errors import BadOptionError, quoted

LEAST_WIDTHS = 2
"""Fewest widths that let a job change its width."""
MOST_WIDTHS = 64
"""Most widths of one job; each is a shape in its rows."""
_RANGE = re.compile(r"(?P<least>[0-9]{1,6})-(?P<largest>[0-9]{1,6})(?::(?P<step>[0-9]{1,6}))?")
_LIST = re.compile(r"[0-9]{1,6}(?: [0-9]{1,6})*")
_HOW = "write e.g. 2-8, 2-8:2 or 2 4 8"


class BadWidthsError(BadOptionError):
    """A text names no widths; ``hint`` says how to write them."""

    def __init__(self, message: str, hint: str = _HOW) -> None:
        super().__init__(message, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The instance counts that a job may run with."""

    counts: tuple[int, ...]
    """The counts in ascending order, each once; two or more."""
    measured: MeasuredWidths | None = None
    """Speeds of earlier runs; None: they were measured at fewer than two widths."""

    @property
    def least(self) -> int:
        return self.counts[0]

    @property
    def largest(self) -> int:
        return self.counts[-1]


def read_widths(text: str) -> Widths:
    """Read ``2-8``, ``2-8:2`` or ``2 4 8``. Raises BadWidthsError."""
    if (match := _RANGE.fullmatch(text)) is not None:
        counts = _range(int(match["least"]), int(match["largest"]), int(match["step"] or 1))
    elif _LIST.fullmatch(text) is not None:
        counts = tuple(int(count) for count in text.split(" "))
    else:
        raise BadWidthsError(f"is {quoted(text)}, which is no range and no list of widths")
    if 0 in counts:
        raise BadWidthsError("has the width 0", f"use widths of at least 1; {_HOW}")
    if list(counts) != sorted(set(counts)):
        raise BadWidthsError(
            "names its widths out of order or twice", f"name each once, the least first; {_HOW}"
        )
    if len(counts) < LEAST_WIDTHS:
        raise BadWidthsError("names only one width", f"name at least two, or leave the tag out; {_HOW}")
    if len(counts) > MOST_WIDTHS:
        raise BadWidthsError(f"names {len(counts)} widths, more than {MOST_WIDTHS}", f"use a step; {_HOW}")
    return Widths(counts=counts)


def _range(least: int, largest: int, step: int) -> tuple[int, ...]:
    if largest < least:
        raise BadWidthsError(f"begins with {least}, more than its end, {largest}", f"write {largest}-{least}")
    if step < 1:
        raise BadWidthsError("has the step 0", "use a step of at least 1, e.g. 2-8:2")
    if (largest - least) % step:
        fits = largest - (largest - least) % step
        raise BadWidthsError(
            f"does not reach {largest} in steps of {step} from {least}", f"write e.g. {least}-{fits}:{step}"
        )
    return tuple(range(least, largest + 1, step))
