"""Means over time: the queue's length, the use of the capacity, and the hours of a week."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil

HOUR_S = 3600
WEEK_H = 168
MOST_BINS = 360
_STEPS_H = (1, 2, 3, 6, 12, 24, 48, 168)

Interval = tuple[int, int, float]
"""A value over a time: from and until, in seconds since the history's beginning, and how much."""


def bin_seconds(length_s: int) -> int:
    """Return the length of one point of a curve: whole hours, and few enough points to draw."""
    fitting = (step * HOUR_S for step in _STEPS_H if step * HOUR_S * MOST_BINS >= length_s)
    return next(fitting, ceil(length_s / MOST_BINS))


def binned(intervals: Iterable[Interval], *, bin_s: int, length_s: int) -> list[float]:
    """Return the mean amount in each bin from 0 to the length; the last bin may be cut short."""
    bins = ceil(length_s / bin_s)
    partial, steps = [0.0] * bins, [0.0] * (bins + 1)
    for since, until, amount in intervals:
        since_s, until_s = max(0, since), min(until, length_s)
        if until_s <= since_s:
            continue
        first, last = since_s // bin_s, (until_s - 1) // bin_s
        if first == last:
            partial[first] += amount * (until_s - since_s)
            continue
        partial[first] += amount * ((first + 1) * bin_s - since_s)
        partial[last] += amount * (until_s - last * bin_s)
        steps[first + 1] += amount
        steps[last] -= amount
    means, whole = [], 0.0
    for number in range(bins):
        whole += steps[number]
        means.append((partial[number] + whole * bin_s) / min(bin_s, length_s - number * bin_s))
    return means


def by_hour_of_week(intervals: Iterable[Interval], *, begins: datetime, length_s: int) -> list[float | None]:
    """Return means of the 168 hours from Monday 00:00 UTC on; None for an hour the period lacks."""
    past_hour = begins.minute * 60 + begins.second
    shifted = ((since + past_hour, until + past_hour, amount) for since, until, amount in intervals)
    whole_s = past_hour + length_s
    means = binned(shifted, bin_s=HOUR_S, length_s=whole_s)
    seconds = [float(min(HOUR_S, whole_s - number * HOUR_S)) for number in range(len(means))]
    if means and past_hour:
        seconds[0] -= past_hour
        means[0] *= min(HOUR_S, whole_s) / seconds[0] if seconds[0] > 0 else 0.0
    first = begins.weekday() * 24 + begins.hour
    return _folded(means, seconds, first)


def _folded(means: Sequence[float], seconds: Sequence[float], first: int) -> list[float | None]:
    sums, times = [0.0] * WEEK_H, [0.0] * WEEK_H
    for number, (mean, long) in enumerate(zip(means, seconds, strict=True)):
        hour = (first + number) % WEEK_H
        sums[hour] += mean * long
        times[hour] += long
    return [total / time if time > 0 else None for total, time in zip(sums, times, strict=True)]
