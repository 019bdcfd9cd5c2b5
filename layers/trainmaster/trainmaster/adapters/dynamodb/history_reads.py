"""Read the history for people: no more rows of it than an answer shows."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TypeVar

from trainmaster.adapters.dynamodb import history_rows, layout
from trainmaster.adapters.dynamodb.calls import SortKeys
from trainmaster.adapters.dynamodb.codec import decode, iso
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item
from trainmaster.adapters.dynamodb.history_rows import Range
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
from trainmaster.core.jobs.instances import Capacity

T = TypeVar("T")
PAGE = 500
"""Rows of one call; a row of the history has about 500 bytes."""


class HistoryReads(GuardedReads):
    """Implements HistoryReader."""

    def history_since(self, pool: str) -> datetime | None:
        since = (self._rows.get(layout.counters_key(pool)) or {}).get(history_rows.HISTORY_SINCE)
        return datetime.fromisoformat(since) if isinstance(since, str) else None

    def endings(
        self, pool: str, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[Ending, ...], Position | None]:
        return self._listed(history_rows.ending_ranges(pool, window), ending_row, after, limit)

    def attempts(self, name: str, entry_id: str) -> tuple[Attempt, ...]:
        partition, first = layout.attempt_key(name, entry_id, 0)
        items = self._rows.query(partition, SortKeys.beginning(first.rpartition("#")[0] + "#"))
        return tuple(self._understood(items, attempt_row))

    def past_warm_pools(self, pool: str, window: Window, *, limit: int) -> tuple[PastWarmPool, ...]:
        return self._listed(history_rows.warm_ranges(pool, window), past_warm_row, None, limit)[0]

    def past_events(
        self, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[PastEvent, ...], Position | None]:
        return self._listed(history_rows.event_ranges(window), event_row, after, limit)

    def capacity_changes(self, pool: str, window: Window, *, limit: int) -> tuple[CapacityChange, ...]:
        """Return the changes of the window and the last one before it, else the next one after it."""
        partition = history_rows.capacity_partition(pool)
        since, until = iso(window.since), iso(window.until)
        earlier = self._rows.query(partition, SortKeys.up_to(since), backwards=True, page=1)
        changes = list(self._made(earlier, capacity_row, most=1))
        later = self._rows.query(partition, SortKeys.behind(since), page=PAGE)
        for change in self._made(later, capacity_row, most=limit):
            # If no change is earlier, the first one after the window says what capacity it replaced.
            if iso(change.at) >= until and changes:
                break
            changes.append(change)
        return tuple(changes)

    def wait_counts(self, pool: str, since: datetime, until: datetime) -> Iterator[WaitCount]:
        for day in Window(since=since, until=until).days():
            items = self._rows.query(history_rows.waits_partition(pool, day), page=PAGE)
            for counts in self._understood(items, partial(wait_row, day)):
                yield from (count for count in counts if since <= count.minute < until)

    def _listed(
        self,
        ranges: Iterable[Range],
        make: Callable[[Item], T],
        after: Position | None,
        limit: int,
    ) -> tuple[tuple[T, ...], Position | None]:
        """Read at most ``limit`` rows behind a position; also return the last position, None at the end."""
        made: list[T] = []
        looked, position, page = 0, after, _page_of(limit + 1)
        for partition, first, last in _behind(ranges, after):
            bound = after[1] if after is not None and after[0] == partition else None
            for row in self._rows.query(partition, SortKeys.between(bound or first, last), page=page):
                if row["sk"] == bound:
                    continue
                if looked == limit:
                    return tuple(made), position
                looked += 1
                position = (partition, row["sk"])
                made += self._understood([row], make)
        return tuple(made), None

    def _made(self, items: Iterator[Item], make: Callable[[Item], T], *, most: int) -> Iterator[T]:
        for _, row in zip(range(most), items, strict=False):
            yield from self._understood([row], make)


def _page_of(rows: int) -> int:
    """Split the rows into equal pages of at most ``PAGE``, and return the rows of one page."""
    return -(-rows // -(-rows // PAGE))


def _behind(ranges: Iterable[Range], after: Position | None) -> Iterator[Range]:
    """Yield the ranges from the position's partition on; none if the position is in none of them."""
    is_there = after is None
    for partition_range in ranges:
        is_there = is_there or (after is not None and partition_range[0] == after[0])
        if is_there:
            yield partition_range


def ending_row(item: Item) -> Ending:
    return decode(Ending, item)


def attempt_row(item: Item) -> Attempt:
    return decode(Attempt, item)


def past_warm_row(item: Item) -> PastWarmPool:
    return decode(PastWarmPool, item)


def capacity_row(item: Item) -> CapacityChange:
    return decode(CapacityChange, item)


def event_row(item: Item) -> PastEvent:
    detail = json.loads(gzip.decompress(bytes(item["detail"])))
    return decode(PastEvent, {**item, "detail": detail})


def wait_row(day: date, item: Item) -> list[WaitCount]:
    hour, _, rest = item["sk"].partition("#")
    team, _, capacity = rest.rpartition("#")
    began = datetime(day.year, day.month, day.day, int(hour), tzinfo=UTC)
    return [
        WaitCount(
            minute=began + timedelta(minutes=int(name[1:])),
            team=team,
            capacity=Capacity.parse(capacity),
            count=int(count),
        )
        for name, count in sorted(item.items())
        if name[0] == "m" and name[1:].isdigit()
    ]
