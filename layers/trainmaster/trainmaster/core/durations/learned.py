"""What the ended jobs say about the next one: the most specific histogram, filled up with broader ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from trainmaster.core.durations.decay import era_of, eras_read, jobs_in, weight_at
from trainmaster.core.durations.histogram import Histogram, bucket

BORROWED_JOBS = 3.0
"""What the broader histogram counts for beside a more specific one, in jobs: that has its say from the third
run on. Source: measured; between 1 and 8 it makes no difference to who seems the shorter one."""
SHARES = tuple((2 * number + 1) / 20 for number in range(10))
SHORTEST = timedelta(minutes=1)
"""A job that has not trained yet and has outlasted every length trains this long at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRow:
    """Runs of one kind: weights by year and bucket."""

    newest: datetime
    """When the last one was added."""
    weights: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @property
    def jobs(self) -> Histogram:
        return jobs_in(self.weights.items(), newest=self.newest)

    def read(self, now: datetime) -> "LearnedRow | None":
        """What a reader finds of it: years that say something still."""
        read = eras_read(now)
        if all(era in read for era in self.weights):  # but for a while after a new year
            return self if self.weights else None
        weights = {era: counts for era, counts in self.weights.items() if era in read}
        return LearnedRow(newest=self.newest, weights=weights) if weights else None

    def after(self, trained: timedelta, *, ended_at: datetime) -> "LearnedRow":
        """With one more; the order in which runs are added makes no difference to their shares."""
        era, number = era_of(ended_at), bucket(trained)
        year = dict(self.weights.get(era, {}))
        year[number] = year.get(number, 0) + weight_at(ended_at)
        return LearnedRow(newest=ended_at, weights={**self.weights, era: year})


def merged(rows: Iterable[LearnedRow]) -> LearnedRow:
    """Of one kind of jobs, in several years; at least one."""
    every = list(rows)
    weights = {era: counts for row in every for era, counts in row.weights.items()}
    return LearnedRow(newest=max(row.newest for row in every), weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyLengths:
    """Ten lengths of training that a job is equally likely to have, rising; few enough to travel with it."""

    lengths: tuple[timedelta, ...]

    @property
    def histogram(self) -> Histogram:
        return Histogram(dict(Counter(bucket(one) for one in self.lengths)))

    def ended_by(self, length: timedelta) -> float:
        """How likely it trains no longer than this."""
        return sum(one <= length for one in self.lengths) / len(self.lengths)

    def remaining(self, trained: timedelta, *, at_most: timedelta) -> timedelta:
        """What is expected to be left of a job that has trained this long; never negative.

        The mean over the lengths that it may still have. Who has outlasted all of them is expected to go on
        for as long again.

        Args:
            trained: So far, of all attempts together.
            at_most: What its MaxRuntimeInSeconds leaves it.
        """
        return _remaining(self.lengths, trained, at_most)


@lru_cache(maxsize=4096)
def _remaining(lengths: tuple[timedelta, ...], trained: timedelta, at_most: timedelta) -> timedelta:
    """Asked again of a job with each news of it."""
    left = [one - trained for one in lengths if one > trained] or [max(trained, SHORTEST)]
    return _whole(sum((min(one, at_most) for one in left), timedelta()) / len(left))


def likely_lengths(rows: Sequence[LearnedRow | None], *, limit: timedelta) -> LikelyLengths | None:
    """What the rows say together.

    Args:
        rows: Of a job's keys, the most specific first; None where nothing of the kind has ended.
        limit: Its MaxRuntimeInSeconds.

    Returns:
        None: nothing is known.
    """
    known = Histogram({})
    for row in reversed(rows):
        if row is not None:
            known = row.jobs.with_prior(known, jobs=BORROWED_JOBS)
    lengths = [known.quantile(share) for share in SHARES]
    found = [min(length, limit) for length in lengths if length is not None]
    return LikelyLengths(lengths=tuple(_whole(one) for one in found)) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """How long a job is going to train, as far as its like tell when it is submitted."""

    predicted: timedelta | None = None
    """The mean of the last two of its team and lane."""
    likely: LikelyLengths | None = None


NOTHING_KNOWN = Known()


def _whole(length: timedelta) -> timedelta:
    """As the table keeps it."""
    return timedelta(seconds=int(length.total_seconds()))
