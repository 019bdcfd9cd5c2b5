"""Histograms of training lengths by logarithmic bucket, and the estimates that they give."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate

BUCKETS_PER_DOUBLING = 2
_HARDLY_ANY = 1e-6
"""Share of the jobs below which a tail tells nothing: so few outlast a length that the rest is unknown."""


@lru_cache(maxsize=4096)  # each submission asks for those of the last runs of its kinds again
def bucket(length: timedelta) -> int:
    """Return the logarithmic bucket of a length: bucket b holds 2**(b/2) up to 2**((b+1)/2) seconds."""
    return int(BUCKETS_PER_DOUBLING * math.log2(max(length.total_seconds(), 1)))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Weights of lengths by ``bucket``; within a bucket the logarithm of the length is spread evenly."""

    weights: Mapping[int, float]
    _known: tuple[tuple[int, ...], tuple[float, ...]] | None = field(
        init=False, compare=False, repr=False, default=None
    )
    """Answer of ``_cumulated``; None until it is asked for, which not every histogram is."""

    @property
    def total(self) -> float:
        _, sums = self._cumulated()
        return sums[-1] if sums else 0.0

    def _cumulated(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Return the buckets in their order, and the weight of each with all shorter ones."""
        if self._known is None:
            weights = self.weights
            buckets = tuple(sorted(weights))
            if weights and min(weights.values()) <= 0:  # hardly ever
                buckets = tuple(number for number in buckets if weights[number] > 0)
            sums = tuple(accumulate(map(weights.__getitem__, buckets)))
            object.__setattr__(self, "_known", (buckets, sums))
            return buckets, sums
        return self._known

    def ended_by(self, length: timedelta) -> float:
        """Return the share of the jobs that train no longer than this."""
        return self._below(length) / self.total if self.total else 0.0

    def quantile(self, share: float, *, longer_than: timedelta = timedelta()) -> timedelta | None:
        """Return the length that this share of the jobs longer than ``longer_than`` does not exceed.

        Returns:
            None if hardly any job trains that long, or no job is known.
        """
        gone, total = self._below(longer_than) if longer_than else 0.0, self.total
        if total - gone <= _HARDLY_ANY * total:
            return None
        return max(self._length_at(gone + share * (total - gone)), longer_than)

    def remaining(self, share: float, *, trained: timedelta) -> timedelta | None:
        """Return the time left, never negative, to a job that has trained this long.

        None as in ``quantile``.
        """
        whole = self.quantile(share, longer_than=trained)
        return None if whole is None else whole - trained

    def with_prior(self, prior: "Histogram", *, jobs: float) -> "Histogram":
        """Return this histogram filled up with ``prior``, which counts as ``jobs`` jobs in all."""
        total = prior.total
        if not total:
            return self
        weights = dict(self.weights)
        for number, weight in prior.weights.items():
            weights[number] = weights.get(number, 0.0) + jobs * weight / total
        return Histogram(weights)

    def _below(self, length: timedelta) -> float:
        position = BUCKETS_PER_DOUBLING * math.log2(max(length.total_seconds(), 1))
        buckets, sums = self._cumulated()
        whole = 0.0
        for number, up_to in zip(buckets, sums, strict=True):
            if number + 1 > position:
                return whole + (up_to - whole) * max(position - number, 0)
            whole = up_to
        return whole

    def _length_at(self, weight: float) -> timedelta:
        buckets, sums = self._cumulated()
        place = bisect_right(sums, weight)
        if place == len(sums):
            return _seconds(buckets[-1] + 1)
        whole = sums[place - 1] if place else 0.0
        return _seconds(buckets[place] + (weight - whole) / (sums[place] - whole))


def _seconds(position: float) -> timedelta:
    return timedelta(seconds=2 ** (position / BUCKETS_PER_DOUBLING))
