"""Rows of the history that a commit adds, and what it counts of jobs that wait."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import history_layout
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.counting import Update, Updates
from trainmaster.adapters.dynamodb.layout import Key
from trainmaster.core.history.journal import ending_of, event_of, wait_counts, waits_for
from trainmaster.core.history.past_records import CapacityChange, PastEvent, PastWarmPool
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage

HistoryRow = tuple[Key, Mapping[str, Any], datetime]
"""Its key and content, and the instant that it tells of."""


def history_rows(changes: Sequence[Change], *, at: datetime) -> Iterator[HistoryRow]:
    """Attempts and jobs that ended."""
    for change in changes:
        ending = ending_of(change, at=at)
        if ending is not None:
            key = history_layout.ending_key(change.after.spec.pool, ending)
            yield key, encode(ending), ending.ended_at


def warm_rows(pool: str, warm: PastWarmPool) -> Iterator[HistoryRow]:
    yield history_layout.warm_over_key(pool, warm), encode(warm), warm.until


def capacity_rows(changes: Iterable[CapacityChange]) -> Iterator[HistoryRow]:
    for change in changes:
        yield history_layout.capacity_change_key(change), encode(change), change.at


def event_rows(messages: Iterable[OutboxMessage]) -> Iterator[HistoryRow]:
    for message in messages:
        event = event_of(message)
        if event is not None:
            yield history_layout.event_key(event), event_item(event), event.at


def event_item(event: PastEvent) -> dict[str, Any]:
    """Its texts packed: they are most of its size."""
    detail = json.dumps(event.detail, separators=(",", ":")).encode()
    known = {"id": event.id, "at": iso(event.at), "kind": event.kind, "team": event.team}
    about = {} if event.job is None else {"job": event.job}
    return {**known, **about, "detail": gzip.compress(detail, mtime=0)}


def wait_rows(updates: Updates, changes: Sequence[Change], *, at: datetime, ttl: int) -> None:
    """From this minute on so many more jobs wait, or fewer."""
    for pool in {change.after.spec.pool for change in changes}:
        counts = wait_counts(change for change in changes if change.after.spec.pool == pool)
        for (team, capacity), count in counts.items():
            _waits(updates, history_layout.wait_key(pool, team, capacity, at), count, at=at, ttl=ttl)


def submission_rows(job: Job, *, ttl: int) -> Updates:
    """One more that waits."""
    updates: Updates = defaultdict(Update)
    at = job.spec.submitted_at
    for team, capacity in waits_for(job):
        _waits(updates, history_layout.wait_key(job.spec.pool, team, capacity, at), 1, at=at, ttl=ttl)
    return updates


def _waits(updates: Updates, key: Key, count: int, *, at: datetime, ttl: int) -> None:
    updates[key].add[history_layout.minute_attribute(at)] += count
    updates[key].put["ttl"] = ttl
