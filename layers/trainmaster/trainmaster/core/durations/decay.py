"""Weights of runs in a histogram.

The later a run, the more it counts, and no stored weight is ever rewritten.

Forward decay: a weight grows with the time since the begin of its year, so that the shares of old runs fall
as new ones are added, in any order. Source: Cormode, Shkapenyuk, Srivastava and Xu (2009), "Forward decay".
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from trainmaster.core.durations.histogram import Histogram

HALF_LIFE = timedelta(days=7)
"""A run counts half as much as one a week later."""
UNIT = 1 << 10
"""Weight of a run at the begin of a year. Weights are whole numbers, below 10**19 at the end of the year."""
FORGOTTEN = timedelta(days=90)
"""A histogram without a run for this long is gone; this far into a year the one of the year before still
counts."""


def era_of(instant: datetime) -> int:
    return instant.year


def weight_at(instant: datetime) -> int:
    """Return the weight of a run that ends at this instant, in the histogram of its year."""
    return round(UNIT * _growth(instant, era_of(instant)))


def eras_read(now: datetime) -> tuple[int, ...]:
    """Return the years whose histograms still count at this instant."""
    return tuple(dict.fromkeys((era_of(now), era_of(now - FORGOTTEN))))


def jobs_in(weights_by_year: Iterable[tuple[int, Mapping[int, int]]], *, newest: datetime) -> Histogram:
    """Merge the histograms of several years into one that counts jobs: a run at ``newest`` counts as 1.

    Args:
        weights_by_year: Pairs of a year and its weights by bucket.
        newest: When the last of the runs ended.
    """
    jobs: dict[int, float] = {}
    for era, weights in weights_by_year:
        unit_now = UNIT * _growth(newest, era)
        if not jobs:  # nearly always the only year
            jobs = {number: weight / unit_now for number, weight in weights.items()}
            continue
        for number, weight in weights.items():
            jobs[number] = jobs.get(number, 0.0) + weight / unit_now
    return Histogram(jobs)


def counted_at(weights_by_year: Mapping[int, int], *, now: datetime) -> float:
    """Count what has these weights: an event at ``now`` counts as 1, and one of a year not read as 0."""
    return sum(weights_by_year.get(era, 0) / (UNIT * _growth(now, era)) for era in sorted(eras_read(now)))


def _growth(instant: datetime, era: int) -> float:
    return float(2 ** ((instant - _begin(era, 1, 1, tzinfo=instant.tzinfo)) / HALF_LIFE))


_begin = lru_cache(maxsize=64)(datetime)
"""Build the begin of a year, the same each time."""
