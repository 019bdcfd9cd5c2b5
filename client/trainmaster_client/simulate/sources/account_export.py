"""The history that an account's stack recorded, read from the API in parts and pages."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import (
    ForbiddenError,
    GatewayRefusedError,
    InvalidArgumentError,
    TooManyRequestsError,
)
from trainmaster_client.jobs.instants import api_time

LONGEST_PART = timedelta(days=31)
"""Longest period of one call. Source: docs/api.md, History."""
RECENT = timedelta(hours=1)
"""Part of a pool's history that is read to find when it begins."""
MOST_PAUSES = 20
"""Most pauses in a row, if the API says that it was called too often."""
LONGEST_PAUSE_SECONDS = 60
ADMINS_ONLY = (
    "Only admins read the history of all teams. Ask one to run trainmaster history-export --from 30d "
    "--output history.jsonl.gz, and give the file to --history."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Half open: ``since`` is in it, ``until`` is not."""

    since: datetime
    until: datetime

    def __post_init__(self) -> None:
        if self.since >= self.until:
            raise InvalidArgumentError(
                f"The period begins at {_text(self.since)} and ends at {_text(self.until)}.",
                hint="Write a begin before its end, e.g. 30d.",
            )

    def __str__(self) -> str:
        return f"{self.since.astimezone(UTC):%Y-%m-%d} to {self.until.astimezone(UTC):%Y-%m-%d}"

    @property
    def parts(self) -> Iterator["Period"]:
        """Return parts as long as the API takes them, the oldest first."""
        count = -((self.since - self.until) // LONGEST_PART)
        bounds = [self.since + number * LONGEST_PART for number in range(count)]
        return (Period(since=since, until=until) for since, until in pairwise([*bounds, self.until]))


def recorded_since(api: ApiClient, pools: Iterable[str], period: Period) -> datetime | None:
    """Find since when the stack has a history, until a pool's reaches as far as the period.

    Returns None if nothing has happened in any of the pools, which are given by name.
    """
    earliest: datetime | None = None
    for pool in pools:
        recent = period.until - RECENT
        since_text = api.pool_history(pool=pool, start=api_time(recent), end=api_time(period.until)).get(
            "since"
        )
        since = datetime.fromisoformat(since_text) if isinstance(since_text, str) else None
        if since is not None and (earliest is None or since < earliest):
            earliest = since
        if earliest is not None and earliest <= period.since:
            break
    return earliest


def export_pages(api: ApiClient, period: Period, *, pause: Callable[[float], None]) -> Iterator[str]:
    """Yield lines of JSON, up to 500 jobs at once; a job in two parts of the period comes twice.

    Raises ForbiddenError with what to do for those who are not admins.
    """
    try:
        for part in period.parts:
            yield from _pages(api, part, pause)
    except GatewayRefusedError:
        raise
    except ForbiddenError as error:
        error.add_note(ADMINS_ONLY)
        raise


def _pages(api: ApiClient, part: Period, pause: Callable[[float], None]) -> Iterator[str]:
    token: str | None = None
    while True:
        page, token = _page(api, part, token, pause)
        yield page
        if token is None:
            return


def _page(
    api: ApiClient, part: Period, token: str | None, pause: Callable[[float], None]
) -> tuple[str, str | None]:
    for _ in range(MOST_PAUSES):
        try:
            return api.history_page(start=_text(part.since), end=_text(part.until), next_token=token)
        except TooManyRequestsError as error:
            seconds = error.problem.retry_after
            pause(min(int(seconds), LONGEST_PAUSE_SECONDS) if seconds.isdecimal() else LONGEST_PAUSE_SECONDS)
    return api.history_page(start=_text(part.since), end=_text(part.until), next_token=token)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
