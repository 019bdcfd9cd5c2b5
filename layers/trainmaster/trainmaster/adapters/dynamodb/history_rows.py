"""Rows of the history: where they lie, and what a commit adds; nobody decides by them.

| row | pk | sk |
|---|---|---|
| attempt or job that ended within a day of its claim | ``D#pool#day`` | ``instant#job#attempt`` |
| the same, after more than a day | ``DL#pool`` | ``instant#job#attempt`` |
| warm pool that is over, within a day | ``DW#pool#day`` | ``instant#training-job-name`` |
| the same, after more than a day | ``DWL#pool`` | ``instant#training-job-name`` |
| change of a pool's capacity | ``C#pool`` | ``instant`` |
| changes of how many jobs wait, by minute of an hour | ``G#pool#day`` | ``hour#team#capacity`` |
| event | ``Y#day`` | ``instant#id`` |

Days and hours are UTC. Beside them an attribute of the counters says since when they are written.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.layout import MAX_SORT_KEY, Key
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.history.journal import ending_of, event_of, wait_counts, waits_for
from trainmaster.core.history.past_records import (
    LONGEST_ATTEMPT,
    LONGEST_WARM_POOL,
    ONE_DAY,
    CapacityChange,
    Ending,
    PastEvent,
    PastWarmPool,
    Window,
)
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage

HISTORY_SINCE = "history_since"
"""Attribute of counters: the instant since which the pool's history is written."""

Range = tuple[str, str, str]
"""A partition, the first sort key, and the sort key that ends the range and is not in it."""


def ending_key(pool: str, ending: Ending) -> Key:
    number = "" if ending.attempt is None else str(ending.attempt.number)
    partition = _long(pool) if ending.is_long else _day("D", pool, ending.ended_at)
    return (partition, f"{iso(ending.ended_at)}#{ending.job}#{number}")


def warm_over_key(pool: str, warm: PastWarmPool) -> Key:
    partition = _long_warm(pool) if warm.until - warm.since > ONE_DAY else _day("DW", pool, warm.until)
    return (partition, f"{iso(warm.until)}#{warm.training_job_name}")


def capacity_change_key(change: CapacityChange) -> Key:
    return (capacity_partition(change.pool), iso(change.at))


def event_key(event: PastEvent) -> Key:
    return (f"Y#{_date(event.at)}", f"{iso(event.at)}#{event.id}"[:MAX_SORT_KEY])


def wait_key(pool: str, team: str, capacity: Capacity, at: datetime) -> Key:
    return (_day("G", pool, at), f"{at.astimezone(UTC):%H}#{team}#{capacity}")


def minute_attribute(at: datetime) -> str:
    """Name the attribute of this minute in a row of waits."""
    return f"m{at.astimezone(UTC):%M}"


def capacity_partition(pool: str) -> str:
    return f"C#{pool}"


def waits_partition(pool: str, day: date) -> str:
    return f"G#{pool}#{day.isoformat()}"


def ending_ranges(pool: str, window: Window) -> Iterator[Range]:
    """Yield the ranges of all that was live at some instant of the window, long attempts first."""
    since, until = iso(window.since), iso(window.until + LONGEST_ATTEMPT)
    yield (_long(pool), since, until)
    short = iso(window.until + ONE_DAY)
    yield from ((f"D#{pool}#{day.isoformat()}", since, short) for day in window.days(longer=ONE_DAY))


def warm_ranges(pool: str, window: Window) -> Iterator[Range]:
    since = iso(window.since)
    yield (_long_warm(pool), since, iso(window.until + LONGEST_WARM_POOL))
    short = iso(window.until + ONE_DAY)
    yield from ((f"DW#{pool}#{day.isoformat()}", since, short) for day in window.days(longer=ONE_DAY))


def event_ranges(window: Window) -> Iterator[Range]:
    since, until = iso(window.since), iso(window.until)
    yield from ((f"Y#{day.isoformat()}", since, until) for day in window.days())


def _long(pool: str) -> str:
    return f"DL#{pool}"


def _long_warm(pool: str) -> str:
    return f"DWL#{pool}"


def _day(kind: str, pool: str, at: datetime) -> str:
    return f"{kind}#{pool}#{_date(at)}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


HistoryRow = tuple[Key, Mapping[str, Any], datetime]
"""Key and content of a row, and the instant that it records."""


def history_rows(changes: Sequence[Change], *, at: datetime) -> Iterator[HistoryRow]:
    """Yield the rows of attempts and jobs that ended."""
    for change in changes:
        ending = ending_of(change, at=at)
        if ending is not None:
            key = ending_key(change.after.spec.pool, ending)
            yield key, encode(ending), ending.ended_at


def warm_rows(pool: str, warm: PastWarmPool) -> Iterator[HistoryRow]:
    yield warm_over_key(pool, warm), encode(warm), warm.until


def capacity_rows(changes: Iterable[CapacityChange]) -> Iterator[HistoryRow]:
    for change in changes:
        yield capacity_change_key(change), encode(change), change.at


def event_rows(messages: Iterable[OutboxMessage]) -> Iterator[HistoryRow]:
    for message in messages:
        event = event_of(message)
        if event is not None:
            yield event_key(event), event_item(event), event.at


def event_item(event: PastEvent) -> dict[str, Any]:
    """Encode an event with its texts compressed, as they are most of its size."""
    detail = json.dumps(event.detail, separators=(",", ":")).encode()
    known = {"id": event.id, "at": iso(event.at), "kind": event.kind, "team": event.team}
    about = {} if event.job is None else {"job": event.job}
    return {**known, **about, "detail": gzip.compress(detail, mtime=0)}


def wait_rows(updates: Updates, changes: Sequence[Change], *, at: datetime, ttl: int) -> None:
    """Record by how many jobs the queue grows or shrinks in this minute.

    The first record begins the history.
    """
    for pool in {change.after.spec.pool for change in changes}:
        counters = updates[layout.counters_key(pool)]
        if counters.says_something:
            counters.shift.append((HISTORY_SINCE, HISTORY_SINCE, iso(at)))
        counts = wait_counts(change for change in changes if change.after.spec.pool == pool)
        for (team, capacity), count in counts.items():
            _waits(updates, wait_key(pool, team, capacity, at), count, at=at, ttl=ttl)


def submission_rows(job: Job, *, ttl: int) -> Updates:
    """Record that one more job waits."""
    updates: Updates = defaultdict(Update)
    at = job.spec.submitted_at
    for team, capacity in waits_for(job):
        _waits(updates, wait_key(job.spec.pool, team, capacity, at), 1, at=at, ttl=ttl)
    return updates


def _waits(updates: Updates, key: Key, count: int, *, at: datetime, ttl: int) -> None:
    updates[key].add[minute_attribute(at)] += count
    updates[key].put["ttl"] = ttl
