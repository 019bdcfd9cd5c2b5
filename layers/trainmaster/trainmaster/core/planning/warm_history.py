"""Keep what jobs of one warm key did recently: when they started and ended, and how long start-ups took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median_low
from typing import TypeVar

LATEST_STARTS = 16
"""Number of the last starts of a key that are kept; as many ends are."""
LATEST_STARTUPS = 5
"""Number of the last start-ups of a key that are kept, cold and warm ones apart."""
KEPT = timedelta(days=90)
"""How long the record of a key is kept after its last start or end."""
ASSUMED_WARM_SHARE = 8
"""Start-up in a warm pool as a part of a cold one, of a key that has none recorded: half a minute of four.
SageMaker aims at less than 20 seconds, and the container has to start as well."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStart:
    """The start of an attempt that could use a warm pool of its key."""

    at: datetime
    """When its instances were claimed."""
    ready: datetime | None = None
    """When its job began to wait; None: the job came back to the queue, so that it was no new arrival."""
    team: str | None = None
    """The job's team; None: an earlier release noted the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmLesson:
    """One start or end, as it is added to the record of its key."""

    key: str
    start: KeyStart | None = None
    job: str = ""
    """Name of the job that started; empty where this is no start."""
    ended_at: datetime | None = None
    """When the attempt left its instances warm; None: it left none, or this is a start."""
    startup: timedelta | None = None
    """Instance time that the ended attempt had needed until it trained; None: it never trained."""
    is_warm: bool = False
    """Whether the ended attempt had started in a warm pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The time from an end that left instances idle to the next job that could use them."""

    ended_at: datetime
    length: timedelta
    is_over: bool
    """False: no job came in all this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmHistory:
    """The last starts, ends and start-ups of one warm key in one pool, each with the newest first."""

    starts: tuple[KeyStart, ...] = ()
    ends: tuple[datetime, ...] = ()
    """When attempts of the key left a warm pool."""
    cold: tuple[timedelta, ...] = ()
    """Instance time that attempts needed until they trained, without a warm pool."""
    warm: tuple[timedelta, ...] = ()
    """The same of attempts that took over a warm pool."""
    job: str | None = None
    """The job that started last: its request says what jobs of the key have in common. None: only an earlier
    release has noted starts."""

    def after(self, lesson: WarmLesson) -> "WarmHistory":
        """Return the record with one more start or end of the key."""
        history = self
        if lesson.start is not None:
            history = replace(
                history,
                starts=pushed(history.starts, [lesson.start], most=LATEST_STARTS),
                job=lesson.job,
            )
        if lesson.ended_at is not None:
            history = replace(history, ends=pushed(history.ends, [lesson.ended_at], most=LATEST_STARTS))
        if lesson.startup is None:
            return history
        if lesson.is_warm:
            return replace(history, warm=pushed(history.warm, [lesson.startup], most=LATEST_STARTUPS))
        return replace(history, cold=pushed(history.cold, [lesson.startup], most=LATEST_STARTUPS))

    @property
    def cold_startup(self) -> timedelta | None:
        """Median of the last start-ups without a warm pool; None if none is known."""
        return median_low(self.cold) if self.cold else None

    @property
    def saved_by_start(self) -> timedelta:
        """Start-up that a warm pool saves the next attempt; 0 as long as no cold start-up is known."""
        if self.cold_startup is None:
            return timedelta()
        warm = median_low(self.warm) if self.warm else self.cold_startup / ASSUMED_WARM_SHARE
        return max(self.cold_startup - warm, timedelta())

    def gaps(self, *, horizon: timedelta, now: datetime) -> Iterator[Gap]:
        """Pair each end with the start that would have taken over its instances, had they been kept.

        Ends come in their order, and each gets the first start after it that no earlier end got. An end after
        which that job was waiting already yields nothing: whether anybody waits is known when it is decided,
        and only the arrivals after it are in question.

        Args:
            horizon: Longest time that instances are kept; a job that comes later finds none.
            now: Instant up to which an end without a start has been waited for.
        """
        starts = sorted(self.starts, key=lambda start: start.at)
        # A full list may have lost the start that belongs to an older end.
        since = starts[0].at if len(starts) >= LATEST_STARTS else None
        number = 0
        for ended_at in sorted(self.ends):
            if since is not None and ended_at < since:
                continue
            while number < len(starts) and starts[number].at < ended_at:
                number += 1
            start = starts[number] if number < len(starts) else None
            if start is None or start.at - ended_at > horizon:
                yield Gap(ended_at=ended_at, length=min(now - ended_at, horizon), is_over=False)
                continue
            number += 1
            if start.ready is not None and start.ready > ended_at:
                yield Gap(ended_at=ended_at, length=start.ready - ended_at, is_over=True)


def pushed(before: Sequence[T], new: Sequence[T], *, most: int) -> tuple[T, ...]:
    """Put new elements before those of a list that has the newest first."""
    return (*new, *before)[:most]
