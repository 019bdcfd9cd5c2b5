"""What a run counts in a histogram: the later, the more. Nothing is ever rewritten for it.

Forward decay: a weight grows with the time since the begin of its year, so that the shares of old runs fall
as new ones are added, in any order. Source: Cormode, Shkapenyuk, Srivastava and Xu (2009), "Forward decay".
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from trainmaster.core.durations.histogram import Histogram

HALF_LIFE = timedelta(days=7)
"""A run counts half as much as one a week later."""
UNIT = 1 << 10
"""Of a run at the begin of a year; weights are whole numbers, below 10**19 at its end."""
FORGOTTEN = timedelta(days=90)
"""After so long without a run a histogram is gone; so far into a year the one of the year before counts."""


def era_of(instant: datetime) -> int:
    return instant.year


def weight_at(instant: datetime) -> int:
    """Of a run that ends then, in the histogram of its year."""
    return round(UNIT * _growth(instant, era_of(instant)))


def eras_read(now: datetime) -> tuple[int, ...]:
    """The years whose histograms say something by now."""
    return tuple(dict.fromkeys((era_of(now), era_of(now - FORGOTTEN))))


def jobs_in(found: Iterable[tuple[int, Mapping[int, int]]], *, newest: datetime) -> Histogram:
    """Histograms of several years as one, in jobs: one at ``newest`` counts as one.

    Args:
        found: Year, and weights by bucket.
        newest: When the last of them ended.
    """
    jobs: dict[int, float] = {}
    for era, weights in found:
        of_one = UNIT * _growth(newest, era)
        for number, weight in weights.items():
            jobs[number] = jobs.get(number, 0.0) + weight / of_one
    return Histogram(jobs)


def _growth(instant: datetime, era: int) -> float:
    begin = datetime(era, 1, 1, tzinfo=instant.tzinfo)
    return float(2 ** ((instant - begin) / HALF_LIFE))
