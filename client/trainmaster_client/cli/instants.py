"""Instants and lengths of time as people write and read them."""

import re
from datetime import datetime, timedelta

from trainmaster_client.errors import InvalidArgumentError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGO = re.compile(r"(\d{1,9})([smhd])")


def instant(text: str, *, now: datetime) -> datetime:
    """So long ago, or the instant itself, without a zone in this machine's. Raises InvalidArgumentError."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        hint = "Needed is something like 90s, 10m, 2h, 1d or 2026-11-21T10:00:00Z."
        raise InvalidArgumentError(f"--since: {text!r} is no time.", hint=hint) from error
    return found if found.tzinfo else found.astimezone()


def length(span: timedelta) -> str:
    """Two units at most: ``3d04h``, ``2h05m``, ``40s``."""
    minutes, seconds = divmod(int(max(span, timedelta()).total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"


def local_time(at: datetime, *, now: datetime) -> str:
    """On this machine's clock, with the day where it is another one."""
    there, here = at.astimezone(), now.astimezone()
    return there.strftime("%H:%M" if there.date() == here.date() else "%a %d %b %H:%M")


def likely_start(p50: datetime, p90: datetime, *, now: datetime) -> str:
    """A start estimate in words, with times of this machine."""
    return f"Likely start: {_ahead(p50, now)}, in 9 of 10 cases by {_clock(p90, now)}"


def _ahead(at: datetime, now: datetime) -> str:
    """What is due is due now: an estimate is made before it is read."""
    return f"in {length(at - now)} (at {local_time(at, now=now)})" if at > now else "now"


def _clock(at: datetime, now: datetime) -> str:
    return f"{local_time(at, now=now)} (in {length(at - now)})" if at > now else "now"
