"""Lengths of training by logarithmic bucket, and what can be read off them."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate

BUCKETS_PER_DOUBLING = 2
_HARDLY_ANY = 1e-6
"""Share of the jobs: beyond what so few outlast, nothing is known."""


def bucket(length: timedelta) -> int:
    """Logarithmic: bucket b holds lengths from 2**(b/2) up to 2**((b+1)/2) seconds."""
    return int(BUCKETS_PER_DOUBLING * math.log2(max(length.total_seconds(), 1)))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Weights of lengths by ``bucket``; within one every logarithm is as likely as another."""

    weights: Mapping[int, float]
    _buckets: tuple[int, ...] = field(init=False, compare=False)
    _sums: tuple[float, ...] = field(init=False, compare=False)
    """Weight of a bucket and of all shorter ones."""

    def __post_init__(self) -> None:
        buckets = tuple(sorted(one for one, weight in self.weights.items() if weight > 0))
        object.__setattr__(self, "_buckets", buckets)
        object.__setattr__(self, "_sums", tuple(accumulate(self.weights[one] for one in buckets)))

    @property
    def total(self) -> float:
        return self._sums[-1] if self._sums else 0.0

    def ended_by(self, length: timedelta) -> float:
        """Share of the jobs that train no longer than this."""
        return self._below(length) / self.total if self.total else 0.0

    def quantile(self, share: float, *, longer_than: timedelta = timedelta()) -> timedelta | None:
        """The length that this share of the jobs does not exceed, of those longer than ``longer_than``.

        Returns:
            None: hardly any train that long, or none is known.
        """
        gone, total = self._below(longer_than) if longer_than else 0.0, self.total
        if total - gone <= _HARDLY_ANY * total:
            return None
        return max(self._length_at(gone + share * (total - gone)), longer_than)

    def remaining(self, share: float, *, trained: timedelta) -> timedelta | None:
        """What a job that has trained so long has left; see ``quantile``. Never negative."""
        whole = self.quantile(share, longer_than=trained)
        return None if whole is None else whole - trained

    def with_prior(self, prior: "Histogram", *, jobs: float) -> "Histogram":
        """Filled up with another one that counts as so many jobs, however many it is made of."""
        if not prior.total:
            return self
        weights = dict(self.weights)
        for number, weight in prior.weights.items():
            weights[number] = weights.get(number, 0.0) + jobs * weight / prior.total
        return Histogram(weights)

    def _below(self, length: timedelta) -> float:
        position = BUCKETS_PER_DOUBLING * math.log2(max(length.total_seconds(), 1))
        whole = 0.0
        for number, up_to in zip(self._buckets, self._sums, strict=True):
            if number + 1 > position:
                return whole + (up_to - whole) * max(position - number, 0)
            whole = up_to
        return whole

    def _length_at(self, weight: float) -> timedelta:
        place = bisect_right(self._sums, weight)
        if place == len(self._sums):
            return _seconds(self._buckets[-1] + 1)
        whole = self._sums[place - 1] if place else 0.0
        return _seconds(self._buckets[place] + (weight - whole) / (self._sums[place] - whole))


def _seconds(position: float) -> timedelta:
    return timedelta(seconds=2 ** (position / BUCKETS_PER_DOUBLING))
