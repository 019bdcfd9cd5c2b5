"""How long jobs train: what a team's earlier jobs say about its next one. A guess, never a promise."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.costs.ledger import month_of
from trainmaster.core.durations.histogram import bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job that completed."""

    trained: timedelta
    limit: timedelta
    """Its MaxRuntimeInSeconds."""
    priority: int
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """How long the completed jobs of one team trained in one lane, and how many there were."""

    last: timedelta
    previous: timedelta
    """The one before; equal to ``last`` after the first."""
    since: datetime
    """When the first of them ended."""
    counts: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Jobs by ``bucket`` of their limit, then of their length: who asks for more time also trains longer."""
    by_month: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Jobs by month (``YYYY-MM``, UTC), then by priority; at least of the last two months."""

    @property
    def predicted(self) -> timedelta:
        """The mean of the last two. Source: Tsafrir, Etsion and Feitelson (2007), on backfilling."""
        return (self.last + self.previous) / 2

    @property
    def all_counts(self) -> Mapping[int, int]:
        """Jobs by length, whatever their limit."""
        return sum((Counter(counts) for counts in self.counts.values()), Counter[int]())

    @classmethod
    def of(cls, run: Run) -> "RunTimes":
        """After the first one."""
        return cls(last=run.trained, previous=run.trained, since=run.ended_at).after(run)

    def after(self, run: Run) -> "RunTimes":
        """With one more."""
        limit, length, month = bucket(run.limit), bucket(run.trained), month_of(run.ended_at)
        kept = {month_of(run.ended_at), month_before(run.ended_at)}
        months = {one: counts for one, counts in self.by_month.items() if one in kept}
        return replace(
            self,
            last=run.trained,
            previous=self.last,
            counts={**self.counts, limit: _one_more(self.counts.get(limit, {}), length)},
            by_month={**months, month: _one_more(months.get(month, {}), run.priority)},
        )


def month_before(instant: datetime) -> str:
    """``YYYY-MM`` of the month before that of an instant."""
    return month_of(start_of_month(instant) - timedelta(days=1))


def start_of_month(instant: datetime) -> datetime:
    return instant.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _one_more(counts: Mapping[int, int], key: int) -> dict[int, int]:
    return {**counts, key: counts.get(key, 0) + 1}
