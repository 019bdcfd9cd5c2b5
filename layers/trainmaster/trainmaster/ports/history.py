"""What is remembered of pools, for people."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from trainmaster.core.history.past_records import (
    CapacityChange,
    Ending,
    PastEvent,
    PastWarmPool,
    Position,
    WaitCount,
    Window,
)
from trainmaster.core.jobs.attempts import Attempt


class HistoryReader(Protocol):
    """Lists give at most ``limit`` records, and the position behind which they continue; None: at the end."""

    def history_since(self, pool: str) -> datetime | None:
        """Since when the pool's history is written; None: nothing was written yet."""

    def endings(
        self, pool: str, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[Ending, ...], Position | None]:
        """All that overlap the window, long ones first, then by their end; and some that ended after it."""

    def attempts(self, name: str, entry_id: str) -> tuple[Attempt, ...]:
        """Of one submission of a job, the oldest first."""

    def past_warm_pools(self, pool: str, window: Window, *, limit: int) -> tuple[PastWarmPool, ...]:
        """All that overlap the window, and some that were over after it."""

    def past_events(
        self, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[PastEvent, ...], Position | None]:
        """By instant."""

    def capacity_changes(self, pool: str, window: Window, *, limit: int) -> tuple[CapacityChange, ...]:
        """Those of the window, the last one before it, and where there is none the next one after it."""

    def wait_counts(self, pool: str, since: datetime, until: datetime) -> Iterable[WaitCount]: ...
