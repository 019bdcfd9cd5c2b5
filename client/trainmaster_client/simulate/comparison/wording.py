"""Figures as people read them: times, shares, money, and how much less or more."""

import math
from datetime import UTC, datetime, timedelta

HOUR_S = 3600
_MINUTE_S, _DAY_S = 60, 24 * HOUR_S
_NOTHING = "-"
_SAME = 0.005
"""A smaller change rounds to none."""
_TIMES = 2.0
"""Ratio from which a change is written in times, not in percent."""


def time_text(seconds: float | None) -> str:
    """Write a time in one unit: ``54s``, ``3.6h``; ``never`` if it has no end, ``-`` for None."""
    if seconds is None:
        return _NOTHING
    if math.isinf(seconds):
        return "never"
    if abs(seconds) < 1.5 * _MINUTE_S:
        return f"{seconds:.0f}s"
    if abs(seconds) < 1.5 * HOUR_S:
        return f"{seconds / _MINUTE_S:.0f}m"
    if abs(seconds) < 1.5 * _DAY_S:
        return f"{seconds / HOUR_S:.1f}h"
    return f"{seconds / _DAY_S:.1f}d"


def hours_text(hours: float | None) -> str:
    return time_text(None if hours is None else hours * HOUR_S)


def share_text(share: float | None) -> str:
    return _NOTHING if share is None else f"{100 * share:.1f} %"


def count_text(number: float | None) -> str:
    return _NOTHING if number is None else f"{number:,.0f}"


def money_text(usd: float | None) -> str:
    return _NOTHING if usd is None else f"{usd:,.0f} USD"


def change_text(before: float | None, after: float | None) -> str:
    """Write a change: ``75 % less``, ``3.1 times as much``, ``same``; empty if it makes no sense."""
    if before is None or after is None or before < 0:
        return ""
    if before == after:
        return "same"
    if math.inf in (before, after) or not before:
        return "less" if after < before else "more"
    ratio = after / before
    if abs(ratio - 1) < _SAME:
        return "same"
    if ratio >= _TIMES:
        return f"{ratio:.1f} times as much"
    return f"{100 * abs(1 - ratio):.0f} % {'less' if ratio < 1 else 'more'}"


def points_text(before: float | None, after: float | None) -> str:
    """Write a change of shares: ``3.7 points more``."""
    if before is None or after is None:
        return ""
    points = 100 * (after - before)
    if abs(points) < 100 * _SAME / 10:
        return "same"
    return f"{abs(points):.1f} points {'less' if points < 0 else 'more'}"


def later_text(seconds: float | None) -> str:
    """Write a shift: ``2.1h earlier``, ``13m later``."""
    if seconds is None:
        return _NOTHING
    if math.isinf(seconds):
        return "never starts" if seconds > 0 else "starts at last"
    return f"{time_text(abs(seconds))} {'later' if seconds > 0 else 'earlier'}" if seconds else "same"


def jobs_text(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def period_text(begins: datetime, length_s: int) -> str:
    """Write a period in whole days, UTC."""
    first = begins.astimezone(UTC)
    last = first + timedelta(seconds=length_s)
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
