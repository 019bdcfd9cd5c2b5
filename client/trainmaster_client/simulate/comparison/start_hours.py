"""When a job would have started, by the hour of the week at which it is submitted."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainmaster_client.simulate.comparison.figures import HIGH, MEDIAN, quantile
from trainmaster_client.simulate.comparison.hours import WEEK_H

ENDLESS = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class StartHours:
    """Waits in seconds; infinite where it had not started when it was no longer followed."""

    label: str
    """Of the policy."""
    asked: int
    """How often it was submitted: once an hour."""
    never: int
    p50_s: float | None
    p90_s: float | None
    by_hour: Sequence[float | None]
    """Medians of the 168 hours from Monday 00:00 UTC on; None: the history has no such hour."""
    waits: Sequence[float | None]
    """In the order of the submissions; None: it never started."""
    refused: str | None = None
    """Why the policy never admits it."""

    @property
    def longest_s(self) -> float:
        """Of the hours that end."""
        return max((one for one in self.by_hour if one is not None and not math.isinf(one)), default=0.0)


def start_hours(
    answers: Iterable[tuple[datetime, timedelta | None]], *, label: str, refused: str | None = None
) -> StartHours:
    """From each submission and its wait; None: it never started."""
    hours: list[list[float]] = [[] for _ in range(WEEK_H)]
    found: list[float | None] = []
    for submitted_at, waited in answers:
        found.append(None if waited is None else waited.total_seconds())
        at = submitted_at.astimezone(UTC)
        seconds = ENDLESS if waited is None else waited.total_seconds()
        hours[at.weekday() * 24 + at.hour].append(seconds)
    waits = sorted(one for hour in hours for one in hour)
    return StartHours(
        label=label,
        asked=len(waits),
        never=sum(map(math.isinf, waits)),
        p50_s=quantile(waits, MEDIAN),
        p90_s=quantile(waits, HIGH),
        by_hour=[quantile(sorted(hour), MEDIAN) for hour in hours],
        waits=found,
        refused=refused,
    )
