"""Predict a job's length from ended jobs: the most specific histogram, filled up with broader ones."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate

from trainmaster.core.durations.histogram import Histogram, bucket
from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.durations.work_speeds import MeasuredWidths

SHARES = tuple((2 * number + 1) / 20 for number in range(10))
"""Shares of the jobs that the ten likely lengths stand for: the middle of each tenth."""
UNDOUBTED_JOBS = 30.0
"""Number of jobs that count as placed where they were expected: a few surprises correct little."""
GAIN = 2.0
"""Correction for each share of the jobs that ended on the wrong side of a predicted length."""
LEAST_SHARE, MOST_SHARE = 0.01, 0.99
BORROWED_JOBS = 3.0
"""Number of jobs that the broader histogram counts for beside a more specific one, which outweighs it from
its third run on. Source: measured; between 1 and 8 it makes no difference to which of two jobs seems the
shorter."""
SECOND = timedelta(seconds=1)
SHORTEST = timedelta(minutes=1)
"""Least time expected to be left of a job that has outlasted every known length."""


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

    def place_of(self, trained: timedelta) -> int:
        """Return how many of the lengths a job that trained this long has outlasted, 0 to 10."""
        return bisect_left(self.lengths, trained)

    def quantile(self, share: float) -> timedelta:
        """Return the length that this share of such jobs does not exceed, between those that are kept."""
        place = min(max(share * len(self.lengths) - 0.5, 0.0), len(self.lengths) - 1.0)
        below, above = self.lengths[int(place)], self.lengths[math.ceil(place)]
        shorter, longer = (max(length / SECOND, 1.0) for length in (below, above))
        between = shorter * float((longer / shorter) ** (place - int(place)))
        return min(SECOND * between, above)

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
    broadest = next((row for row in reversed(rows) if row is not None), None)
    shares = SHARES if broadest is None else corrected(broadest.places)
    lengths = [known.quantile(share) for share in shares]
    capped = [min(length, limit) for length in lengths if length is not None]
    return LikelyLengths(lengths=tuple(_whole(length) for length in capped)) if capped else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Predictions of a job's training time, made from similar jobs when it is submitted."""

    predicted: timedelta | None = None
    """Mean of the last two jobs of its team and lane; None if there are none."""
    likely: LikelyLengths | None = None
    widths: MeasuredWidths | None = None
    """How fast its program was at several widths; None: that is not known, or the job is not elastic."""


NOTHING_KNOWN = Known()


def _whole(length: timedelta) -> timedelta:
    """Cut a length to whole seconds, as the table stores it."""
    return timedelta(seconds=int(length.total_seconds()))


def corrected(places: Histogram) -> tuple[float, ...]:
    """Return the shares at which to read off the ten lengths, rising, by how earlier predictions turned out.

    Lengths that are learned from ended jobs come out short: of the jobs of a rush the short ones end first.
    So each ended job notes its place among the lengths that were predicted for it. Where more than a tenth of
    the jobs outlasted the p90 of theirs, the next p90 is a higher quantile. Source: the idea is that of Gibbs
    and Candes (2021), "Adaptive conformal inference under distribution shift"; here the errors fade by
    forward decay.

    Args:
        places: Jobs by place, 0 to 10: the number of the predicted lengths that a job has outlasted.
    """
    jobs = places.total + UNDOUBTED_JOBS
    ended = accumulate(places.weights.get(place, 0.0) for place in range(len(SHARES)))
    errors = (share - (share * UNDOUBTED_JOBS + by) / jobs for share, by in zip(SHARES, ended, strict=True))
    wanted = (share + GAIN * error for share, error in zip(SHARES, errors, strict=True))
    return tuple(accumulate((min(max(share, LEAST_SHARE), MOST_SHARE) for share in wanted), max))
