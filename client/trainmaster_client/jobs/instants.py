"""Instants and lengths of time as people write and read them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from trainmaster.core.jobs.row_words import length

from trainmaster_client.errors import InvalidArgumentError, MalformedViewError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|\+00:00)?")
"""Matches instants as the API and the lines of attempts write them."""
_SPAN = re.compile(r"(\d{1,9})([smhd])")


def instant(text: str, *, now: datetime, option: str = "--since") -> datetime:
    """Read an instant, or a length of time before ``now``; one without a zone is in this machine's.

    Raises InvalidArgumentError.
    """
    try:
        if (ago := span(text)) is not None:
            return now - ago
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        hint = "use e.g. 90s, 10m, 2h, 1d or 2026-11-21T10:00:00Z."
        raise InvalidArgumentError(f"{option}: {text!r} is not a valid time;", hint=hint) from error
    return at if at.tzinfo else at.astimezone()


def span(text: str) -> timedelta | None:
    """Read a length of time such as ``90s`` or ``2d``; None if it is none."""
    parts = _SPAN.fullmatch(text)
    return None if parts is None else timedelta(seconds=int(parts[1]) * _UNITS[parts[2]])


def api_time(at: datetime) -> str:
    """Write an instant in the form that the API takes."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def likely_start(estimate: Mapping[str, Any], *, now: datetime, zone: tzinfo | None = None) -> str:
    """Write ``estimated_start`` in words, with times of this machine or of ``zone``, which is named then.

    Raises MalformedViewError.
    """
    try:
        middle, late = (datetime.fromisoformat(estimate[key]) for key in ("p50", "p90"))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    if late <= now:
        return "Likely start: any moment now"
    return f"Likely start: {_then(middle, now, zone)}, in 9 of 10 cases by {_then(late, now, zone)}"


def _then(at: datetime, now: datetime, zone: tzinfo | None) -> str:
    """Write an instant like ``03:10 (in 25m00s)``; what was due when it was estimated is due now."""
    zone_name = f" {zone}" if zone else ""
    return f"{clock(at, now, zone=zone)}{zone_name} (in {length(at - now)})" if at > now else "now"


def clock(at: datetime, now: datetime, *, zone: tzinfo | None = None) -> str:
    """Show an instant on this machine's clock, or in ``zone``, with day and year where they are others.

    The zone is named where the clocks change in between: ``zone_line`` says only that of ``now``.
    """
    there, here = at.astimezone(zone), now.astimezone(zone)
    changed = f" {there.tzname()}" if there.utcoffset() != here.utcoffset() else ""
    if there.year != here.year:
        return there.strftime("%Y-%m-%d %H:%M") + changed
    return there.strftime("%H:%M" if there.date() == here.date() else "%a %d %b %H:%M") + changed


def with_local_clocks(text: str, *, now: datetime) -> str:
    """Rewrite the instants in a text of the API, which are UTC, in the form of ``clock``."""
    return _INSTANT.sub(lambda match: _local(match[0], now), text)


def _local(text: str, now: datetime) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:  # no such day
        return text
    return clock(at if at.tzinfo else at.replace(tzinfo=UTC), now)


def zone_line(now: datetime) -> str:
    """Say which zone ``clock`` shows."""
    here = now.astimezone()
    offset = here.strftime("%z")
    if offset == "+0000":
        return "Times are UTC."
    return f"Times are {here.tzname()} (UTC{offset[:3]}:{offset[3:5]})."
