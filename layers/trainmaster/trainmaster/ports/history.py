"""The history of pools, kept for people."""

from collections.abc import Iterable, Mapping
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
from trainmaster.core.planning.warm_history import WarmHistory


class HistoryReader(Protocol):
    """Lists at most ``limit`` records a call, with the position where they continue; None at the end."""

    def history_since(self, pool: str) -> datetime | None:
        """Return since when the pool's history is written; None if nothing was written yet."""

    def endings(
        self, pool: str, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[Ending, ...], Position | None]:
        """List all endings that overlap the window, long ones first, then by their end; some may be later."""

    def attempts(self, name: str, entry_id: str) -> tuple[Attempt, ...]:
        """List the attempts of one submission of a job, the oldest first."""

    def past_warm_pools(self, pool: str, window: Window, *, limit: int) -> tuple[PastWarmPool, ...]:
        """List all warm pools that overlap the window; some may have ended after it."""

    def past_events(
        self, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[PastEvent, ...], Position | None]:
        """List events in order of their instants."""

    def capacity_changes(self, pool: str, window: Window, *, limit: int) -> tuple[CapacityChange, ...]:
        """List the changes of the window and the last one before it, else the next one after it."""

    def wait_counts(self, pool: str, since: datetime, until: datetime) -> Iterable[WaitCount]: ...

    def warm_histories(self, pool: str) -> Mapping[str, WarmHistory]:
        """Read the records of the pool's warm keys, at most 500 of them."""
