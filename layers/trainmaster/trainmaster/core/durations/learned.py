"""Predict a job's length from ended jobs: the most specific histogram, filled up with broader ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from trainmaster.core.durations.decay import era_of, eras_read, jobs_in, weight_at
from trainmaster.core.durations.histogram import Histogram, bucket

BORROWED_JOBS = 3.0
"""Number of jobs that the broader histogram counts for beside a more specific one, which outweighs it from
its third run on. Source: measured; between 1 and 8 it makes no difference to which of two jobs seems the
shorter."""
SHARES = tuple((2 * number + 1) / 20 for number in range(10))
SHORTEST = timedelta(minutes=1)
"""Least time expected to be left of a job that has outlasted every known length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRow:
    """The runs of one kind of jobs: weights by year and bucket."""

    newest: datetime
    """When the last one was added."""
    weights: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @property
    def jobs(self) -> Histogram:
        return jobs_in(self.weights.items(), newest=self.newest)

    def read(self, now: datetime) -> "LearnedRow | None":
        """Return the part of the row that still counts at this instant; None if no year of it does."""
        read = eras_read(now)
        if all(era in read for era in self.weights):  # but for a while after a new year
            return self if self.weights else None
        weights = {era: counts for era, counts in self.weights.items() if era in read}
        return LearnedRow(newest=self.newest, weights=weights) if weights else None

    def after(self, trained: timedelta, *, ended_at: datetime) -> "LearnedRow":
        """Return the row with one more run.

        The order in which runs are added does not change their shares.
        """
        era, number = era_of(ended_at), bucket(trained)
        year = dict(self.weights.get(era, {}))
        year[number] = year.get(number, 0) + weight_at(ended_at)
        return LearnedRow(newest=ended_at, weights={**self.weights, era: year})


def merged(rows: Iterable[LearnedRow]) -> LearnedRow:
    """Merge rows of one kind of jobs, each of other years, into one; there must be at least one row."""
    every = list(rows)
    weights = {era: counts for row in every for era, counts in row.weights.items()}
    return LearnedRow(newest=max(row.newest for row in every), weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyLengths:
    """Ten lengths of training that a job is equally likely to have, rising; few enough to travel with it."""

    lengths: tuple[timedelta, ...]

    @property
    def histogram(self) -> Histogram:
        return Histogram(dict(Counter(bucket(length) for length in self.lengths)))

    def ended_by(self, length: timedelta) -> float:
        """Return the probability that the job trains no longer than this."""
        return sum(trained <= length for trained in self.lengths) / len(self.lengths)

    def remaining(self, trained: timedelta, *, at_most: timedelta) -> timedelta:
        """Return the time expected to be left of a job that has trained this long; never negative.

        It is the mean over the lengths that the job may still have. A job that has outlasted all of them is
        expected to take as long again.

        Args:
            trained: Training time so far, of all attempts together.
            at_most: Time that its MaxRuntimeInSeconds leaves it.
        """
        return _remaining(self.lengths, trained, at_most)


@lru_cache(maxsize=4096)
def _remaining(lengths: tuple[timedelta, ...], trained: timedelta, at_most: timedelta) -> timedelta:
    """Compute ``LikelyLengths.remaining``; cached, because each event of a job needs it again."""
    left = [length - trained for length in lengths if length > trained] or [max(trained, SHORTEST)]
    return _whole(sum((min(rest, at_most) for rest in left), timedelta()) / len(left))


def likely_lengths(rows: Sequence[LearnedRow | None], *, limit: timedelta) -> LikelyLengths | None:
    """Return the lengths that these rows predict together.

    Args:
        rows: Rows of a job's keys, the most specific first; None where no job of the kind has ended.
        limit: Its MaxRuntimeInSeconds.

    Returns:
        None if nothing is known.
    """
    known = Histogram({})
    for row in reversed(rows):
        if row is not None:
            known = row.jobs.with_prior(known, jobs=BORROWED_JOBS)
    lengths = [known.quantile(share) for share in SHARES]
    capped = [min(length, limit) for length in lengths if length is not None]
    return LikelyLengths(lengths=tuple(_whole(length) for length in capped)) if capped else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Predictions of a job's training time, made from similar jobs when it is submitted."""

    predicted: timedelta | None = None
    """Mean of the last two jobs of its team and lane; None if there are none."""
    likely: LikelyLengths | None = None


NOTHING_KNOWN = Known()


def _whole(length: timedelta) -> timedelta:
    """Cut a length to whole seconds, as the table stores it."""
    return timedelta(seconds=int(length.total_seconds()))
