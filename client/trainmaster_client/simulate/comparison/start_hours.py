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
    """Waits in seconds; infinite if the job had not started when it was followed no longer."""

    label: str
    """Label of the policy."""
    asked: int
    """Number of submissions: one an hour."""
    never: int
    p50_s: float | None
    p90_s: float | None
    by_hour: Sequence[float | None]
    """Medians of the 168 hours from Monday 00:00 UTC on; None: the history has no such hour."""
    waits: Sequence[float | None]
    """Waits in the order of the submissions; None means it never started."""
    refused: str | None = None
    """Reason why the policy never admits the job; None if it does."""

    @property
    def longest_s(self) -> float:
        """Return the longest finite wait of the hours."""
        return max((wait for wait in self.by_hour if wait is not None and not math.isinf(wait)), default=0.0)


def start_hours(
    answers: Iterable[tuple[datetime, timedelta | None]], *, label: str, refused: str | None = None
) -> StartHours:
    """Compute the hours from each submission and its wait; a wait of None means it never started."""
    hours: list[list[float]] = [[] for _ in range(WEEK_H)]
    waits_in_order: list[float | None] = []
    for submitted_at, waited in answers:
        waits_in_order.append(None if waited is None else waited.total_seconds())
        at = submitted_at.astimezone(UTC)
        seconds = ENDLESS if waited is None else waited.total_seconds()
        hours[at.weekday() * 24 + at.hour].append(seconds)
    waits = sorted(wait for hour in hours for wait in hour)
    return StartHours(
        label=label,
        asked=len(waits),
        never=sum(map(math.isinf, waits)),
        p50_s=quantile(waits, MEDIAN),
        p90_s=quantile(waits, HIGH),
        by_hour=[quantile(sorted(hour), MEDIAN) for hour in hours],
        waits=waits_in_order,
        refused=refused,
    )
