"""How long jobs of a kind train, as a distribution: also from those that have not ended yet."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate

from trainmaster.core.forecast.run_times import BUCKETS_PER_DOUBLING, bucket


@dataclass(frozen=True, slots=True)
class Lengths:
    """Drawn from by buckets; within one every logarithm is as likely as another."""

    weights: Mapping[int, float]
    _buckets: tuple[int, ...] = field(init=False)
    _sums: tuple[float, ...] = field(init=False)
    """Weight of a bucket and of all shorter ones."""

    def __post_init__(self) -> None:
        buckets = tuple(sorted(self.weights))
        object.__setattr__(self, "_buckets", buckets)
        object.__setattr__(self, "_sums", tuple(accumulate(self.weights[one] for one in buckets)))

    def draw(self, chance: float, *, longer_than: timedelta) -> timedelta | None:
        """The length of a job that has trained for so long already; None: hardly any trains that long.

        Args:
            chance: In [0, 1): which of the possible lengths, from the shortest to the longest.
            longer_than: What is known of it.
        """
        total = self._sums[-1] if self._sums else 0.0
        gone = self._below(longer_than)
        if total - gone <= _HARDLY_ANY * total:
            return None
        return max(self._length_at(gone + chance * (total - gone)), longer_than)

    def _below(self, length: timedelta) -> float:
        position = BUCKETS_PER_DOUBLING * math.log2(max(length.total_seconds(), 1))
        whole = 0.0
        for number, up_to in zip(self._buckets, self._sums, strict=True):
            if number + 1 > position:
                return whole + (up_to - whole) * max(position - number, 0)
            whole = up_to
        return whole

    def _length_at(self, weight: float) -> timedelta:
        whole = 0.0
        for number, up_to in zip(self._buckets, self._sums, strict=True):
            if up_to > weight:
                return _seconds(number + (weight - whole) / (up_to - whole))
            whole = up_to
        return _seconds(self._buckets[-1] + 1)


_HARDLY_ANY = 1e-6


def shares(
    completed: Mapping[int, float], unfinished: Iterable[timedelta], *, limit: int
) -> dict[int, float]:
    """How likely each length is, by bucket; they add up to one. None, where no job has ended.

    The jobs that are still at it are the long ones: left out, every job would seem short. Source: Kaplan and
    Meier (1958), "Nonparametric estimation from incomplete observations".

    Args:
        completed: Jobs by length.
        unfinished: How long jobs have trained that have not ended.
        limit: Bucket of the longest that they may train.
    """
    if not completed:
        return {}
    censored = Counter(bucket(length) for length in unfinished)
    at_risk = sum(completed.values()) + censored.total()
    left = 1.0
    found: dict[int, float] = {}
    for number in range(
        min((*completed, *censored), default=0), max((*completed, *censored), default=-1) + 1
    ):
        at_risk -= censored[number] / 2  # in the middle of the bucket, on average
        ended = completed.get(number, 0)
        if ended:
            found[number] = left * ended / at_risk
            left -= found[number]
        at_risk -= ended + censored[number] / 2
    if left > _HARDLY_ANY:
        _spread(found, left, range(max(censored), max(limit, *censored) + 1))
    return found


def _spread(found: dict[int, float], left: float, buckets: range) -> None:
    """Nobody knows how long those train that outlast all others: up to the limit, each bucket alike."""
    for number in buckets:
        found[number] = found.get(number, 0) + left / len(buckets)


def _seconds(position: float) -> timedelta:
    return timedelta(seconds=2 ** (position / BUCKETS_PER_DOUBLING))
