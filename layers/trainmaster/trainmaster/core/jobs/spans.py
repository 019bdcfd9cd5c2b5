"""Lengths of time as every view writes them."""

from datetime import timedelta

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)


def length(span: timedelta) -> str:
    """Write a length of time in two units at most: ``3d04h``, ``2h05m``, ``40s``; a negative one is 0s."""
    minutes, seconds = divmod(int(max(span, timedelta()).total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"


def short_length(span: timedelta) -> str:
    """Write like ``length``, but in one unit below an hour: for narrow columns."""
    return f"{span // _MINUTE}m" if _MINUTE <= span < _HOUR else length(span)
