"""Equal parts of a trace, each of which is replayed alone, from empty pools of its own size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainmaster_client.errors import InvalidArgumentError

from benchmarks.replay.jobs import DAY_S, HOUR_S

TraceLine = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    number: int
    """Number of the window, counted from 1."""
    since_s: int
    until_s: int
    """Second of the trace at which the window ends; it is not in the window."""
    rows: Sequence[TraceLine]
    """Jobs of the window; their seconds begin with the window."""

    @property
    def days(self) -> float:
        return (self.until_s - self.since_s) / DAY_S


def parts(rows: Sequence[TraceLine], count: int) -> list[Window]:
    """Divide the time up to the last submission, rounded up to a full hour. Each job is in one part.

    Raises:
        InvalidArgumentError: A part has no jobs.
    """
    submitted = [float(row["submit_s"]) for row in rows]
    length_s = math.floor(max(submitted) / HOUR_S + 1) * HOUR_S
    edges = [length_s * number // count for number in range(count + 1)]
    windows = [
        Window(
            number=number + 1,
            since_s=since,
            until_s=until,
            rows=[
                {**row, "submit_s": str(second - since)}
                for row, second in zip(rows, submitted, strict=True)
                if since <= second < until
            ],
        )
        for number, (since, until) in enumerate(pairwise(edges))
    ]
    empty = [window.number for window in windows if not window.rows]
    if empty:
        raise InvalidArgumentError(
            f"Window {empty[0]} of {count} has no jobs.", hint="Give fewer --windows, or another trace."
        )
    return windows
