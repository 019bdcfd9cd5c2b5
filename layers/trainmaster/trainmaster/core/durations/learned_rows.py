"""Keep what the ended jobs of one kind tell: how long they trained, and how well that was predicted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.durations.decay import era_of, eras_read, jobs_in, weight_at
from trainmaster.core.durations.histogram import Histogram, bucket

LATEST = 16
"""Number of the last runs that a row keeps one by one, beside its histogram."""
OLDER_JOBS = 64.0
"""Most jobs that the histogram counts for beside the last runs.

Runs come in rushes: a rush of hundreds would outweigh all that came after it for a half-life of days."""
Weights = Mapping[int, Mapping[int, int]]
"""Weights by year, and then by bucket or place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRow:
    """The runs of one kind of jobs: weights by year and bucket, and the last ones as they were."""

    newest: datetime
    """When the last one was added."""
    weights: Weights = field(default_factory=dict)
    latest: tuple[timedelta, ...] = ()
    """Lengths of the last ``LATEST`` runs, the newest first; empty in a row that was stored without them."""
    placed: Weights = field(default_factory=dict)
    """Weights by year and place: how many of the ten lengths predicted for it a run has outlasted."""

    @property
    def jobs(self) -> Histogram:
        """Count old runs by days and the last ones by number, so that neither a rush nor a lull tells all."""
        older = jobs_in(self.weights.items(), newest=self.newest)
        if not self.latest:
            return older
        last = Histogram(Counter(map(bucket, self.latest)))
        beyond = min(max(older.total - len(self.latest), 0.0), OLDER_JOBS)
        return last.with_prior(older, jobs=beyond) if beyond else last

    @property
    def places(self) -> Histogram:
        """Count jobs by the place that they took among their predicted lengths."""
        return jobs_in(self.placed.items(), newest=self.newest)

    def read(self, now: datetime) -> "LearnedRow | None":
        """Return the part of the row that still counts at this instant; None if no year of it does."""
        read = eras_read(now)
        if all(era in read for era in self.weights):  # but for a while after a new year
            return self if self.weights else None
        weights, placed = (
            {era: counts for era, counts in by_year.items() if era in read}
            for by_year in (self.weights, self.placed)
        )
        if not weights:
            return None
        return LearnedRow(newest=self.newest, weights=weights, latest=self.latest, placed=placed)

    def after(self, trained: timedelta, *, ended_at: datetime) -> "LearnedRow":
        """Return the row with one more run.

        The order in which runs are added changes the last ones, and no share of the histogram.
        """
        weights = _added(self.weights, bucket(trained), ended_at)
        latest = (trained, *self.latest)[:LATEST]
        return replace(self, newest=ended_at, weights=weights, latest=latest)

    def after_placed(self, trained: timedelta, place: int | None, *, ended_at: datetime) -> "LearnedRow":
        """Return the row of a shape with one more run: it notes places, and no last runs.

        Args:
            trained: Length of the run.
            place: ``LikelyLengths.place_of`` the run; None: nothing was predicted for it.
            ended_at: When it ended.
        """
        weights = _added(self.weights, bucket(trained), ended_at)
        placed = self.placed if place is None else _added(self.placed, place, ended_at)
        return replace(self, newest=ended_at, weights=weights, placed=placed)


def merged(rows: Iterable[LearnedRow]) -> LearnedRow:
    """Merge rows of one kind of jobs, each of other years, into one; there must be at least one row."""
    newest_first = sorted(rows, key=lambda row: row.newest, reverse=True)
    return LearnedRow(
        newest=newest_first[0].newest,
        weights={era: counts for row in newest_first for era, counts in row.weights.items()},
        latest=tuple(length for row in newest_first for length in row.latest)[:LATEST],
        placed={era: counts for row in newest_first for era, counts in row.placed.items()},
    )


def _added(by_year: Weights, number: int, at: datetime) -> Weights:
    """Return the weights with one more run, in the year in which it ended."""
    year = dict(by_year.get(era_of(at), {}))
    year[number] = year.get(number, 0) + weight_at(at)
    return {**by_year, era_of(at): year}
