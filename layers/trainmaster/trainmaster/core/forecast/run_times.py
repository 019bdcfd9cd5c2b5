"""Run times of a team's completed jobs in a lane, to guess that of its next one; a guess, never a promise."""

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
    """MaxRuntimeInSeconds of the job."""
    priority: int
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """Training times of the completed jobs of one team in one lane, and how many there were."""

    last: timedelta
    previous: timedelta
    """Training time of the job before the last; equal to ``last`` after the first job."""
    since: datetime
    """When the first of them ended."""
    counts: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Jobs by ``bucket`` of their limit, then of their length: jobs that ask for more time also train
    longer."""
    by_month: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Jobs by month (``YYYY-MM``, UTC), then by priority; at least the last two months are kept."""

    @property
    def predicted(self) -> timedelta:
        """Mean of the last two jobs. Source: Tsafrir, Etsion and Feitelson (2007), on backfilling."""
        return (self.last + self.previous) / 2

    @property
    def all_counts(self) -> Mapping[int, int]:
        """Jobs by length, whatever their limit."""
        return sum((Counter(counts) for counts in self.counts.values()), Counter[int]())

    @classmethod
    def of(cls, run: Run) -> "RunTimes":
        """Return the run times after a first job."""
        return cls(last=run.trained, previous=run.trained, since=run.ended_at).after(run)

    def after(self, run: Run) -> "RunTimes":
        """Return the run times with one more job."""
        limit, length, month = bucket(run.limit), bucket(run.trained), month_of(run.ended_at)
        kept = {month_of(run.ended_at), month_before(run.ended_at)}
        months = {earlier: counts for earlier, counts in self.by_month.items() if earlier in kept}
        return replace(
            self,
            last=run.trained,
            previous=self.last,
            counts={**self.counts, limit: _one_more(self.counts.get(limit, {}), length)},
            by_month={**months, month: _one_more(months.get(month, {}), run.priority)},
        )


def month_before(instant: datetime) -> str:
    """Return the month (``YYYY-MM``) before that of an instant."""
    return month_of(start_of_month(instant) - timedelta(days=1))


def start_of_month(instant: datetime) -> datetime:
    return instant.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _one_more(counts: Mapping[int, int], key: int) -> dict[int, int]:
    return {**counts, key: counts.get(key, 0) + 1}
