"""The history over ``Tables``: what is remembered with a change, and its reads."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from trainmaster.adapters.dynamodb import history_rows
from trainmaster.adapters.dynamodb.history_rows import Range
from trainmaster.core.history.journal import ending_of, event_of, wait_counts, waits_for
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
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage

from tests.memory.tables import Tables


def remember(tables: Tables, changes: Sequence[Change], *, at: datetime) -> None:
    """Endings and waits."""
    for change in changes:
        pool = change.after.spec.pool
        ending = ending_of(change, at=at)
        if ending is not None:
            tables.history[history_rows.ending_key(pool, ending)] = ending
        for (team, capacity), count in wait_counts([change]).items():
            tables.waits[pool, _minute(at), team, capacity] += count


def remember_submission(tables: Tables, job: Job) -> None:
    for team, capacity in waits_for(job):
        tables.waits[job.spec.pool, _minute(job.spec.submitted_at), team, capacity] += 1


def remember_events(tables: Tables, messages: Iterable[OutboxMessage]) -> None:
    for message in messages:
        event = event_of(message)
        if event is not None:
            tables.history[history_rows.event_key(event)] = event


def remember_warm_pool(tables: Tables, pool: str, warm: PastWarmPool) -> None:
    tables.history[history_rows.warm_over_key(pool, warm)] = warm


def history_begins(tables: Tables, pool: str, *, at: datetime) -> None:
    rows = tables.pools[pool]
    rows.history_since = rows.history_since or at


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


class MemoryHistoryReader:
    """HistoryReader."""

    _tables: Tables

    def history_since(self, pool: str) -> datetime | None:
        return self._tables.pools[pool].history_since

    def endings(
        self, pool: str, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[Ending, ...], Position | None]:
        return self._listed(history_rows.ending_ranges(pool, window), after, limit)

    def attempts(self, name: str, entry_id: str) -> tuple[Attempt, ...]:  # noqa: ARG002  as the port
        numbers = sorted(number for one, number in self._tables.attempts if one == entry_id)
        return tuple(self._tables.attempts[entry_id, number] for number in numbers)

    def past_warm_pools(self, pool: str, window: Window, *, limit: int) -> tuple[PastWarmPool, ...]:
        found: tuple[PastWarmPool, ...] = self._listed(history_rows.warm_ranges(pool, window), None, limit)[0]
        return found

    def past_events(
        self, window: Window, *, after: Position | None, limit: int
    ) -> tuple[tuple[PastEvent, ...], Position | None]:
        return self._listed(history_rows.event_ranges(window), after, limit)

    def capacity_changes(self, pool: str, window: Window, *, limit: int) -> tuple[CapacityChange, ...]:
        known = [
            one
            for _, one in sorted(self._tables.history.items())
            if isinstance(one, CapacityChange) and one.pool == pool
        ]
        before = [one for one in known if one.at <= window.since][-1:]
        later = [one for one in known if one.at > window.since]
        within = [one for one in later if one.at < window.until][:limit]
        return (*before, *(within or (later[:1] if not before else ())))

    def wait_counts(self, pool: str, since: datetime, until: datetime) -> Iterator[WaitCount]:
        for (of_pool, minute, team, capacity), count in sorted(self._tables.waits.items()):
            if of_pool == pool and since <= minute < until:
                yield WaitCount(minute=minute, team=team, capacity=capacity, count=count)

    def _listed(
        self, ranges: Iterable[Range], after: Position | None, limit: int
    ) -> tuple[tuple[Any, ...], Position | None]:
        order = list(ranges)
        number = {partition: number for number, (partition, *_) in enumerate(order)}
        keys = sorted(
            (number[pk], sk)
            for pk, sk in self._tables.history
            if pk in number and order[number[pk]][1] <= sk <= order[number[pk]][2]
        )
        behind = [key for key in keys if after is None or key > (number[after[0]], after[1])]
        shown = [(order[one][0], sk) for one, sk in islice(behind, limit)]
        is_cut = len(behind) > len(shown)
        return tuple(self._tables.history[key] for key in shown), shown[-1] if is_cut else None
