"""Rows that keep the last starts, ends and start-ups of a warm key; each write puts them before the older."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.guard import require
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.warm_lessons import warm_lesson
from trainmaster.core.planning.warm_history import (
    KEPT,
    LATEST_STARTS,
    LATEST_STARTUPS,
    KeyStart,
    WarmHistory,
    WarmLesson,
)

_START, _END, _COLD, _WARM = "s#", "e#", "c#", "w#"
"""Prefixes of attributes, numbered from 0 for the newest: starts as ``[claimed, ready]`` and ends, both in
epoch milliseconds, and start-ups without and with a warm pool, in milliseconds plus one. 0 stands for what
there was not."""
_JOB, _TEAM = "job", "t#"
"""The job that started last, whose request says what jobs of the key have in common, and the prefix of the
attributes that name the team of each start."""
MOST_KEYS = 100
"""Rows that one BatchGetItem reads. Source: DynamoDB API reference."""
_MS = timedelta(milliseconds=1)


def warm_history_partition(pool: str) -> str:
    return f"WH#{pool}"


def warm_history_key(pool: str, key: str) -> layout.Key:
    """Build the key of the record of a warm key (``Shape.warm_key``)."""
    return (warm_history_partition(pool), key)


def note_warm_lessons(updates: Updates, changes: Sequence[Change], *, at: datetime) -> None:
    """Add to the rows of warm keys what the changes of one commit teach; ``WarmHistory.after``, as shifts."""
    by_row: defaultdict[layout.Key, list[WarmLesson]] = defaultdict(list)
    for change in changes:
        lesson = warm_lesson(change, at=at)
        if lesson is not None:
            by_row[warm_history_key(change.after.spec.pool, lesson.key)].insert(0, lesson)
    for key, lessons in by_row.items():
        row = updates[key]
        row.put["ttl"] = int((at + KEPT).timestamp())
        jobs = [lesson.job for lesson in lessons if lesson.start is not None]
        row.put |= {_JOB: jobs[0]} if jobs else {}
        starts = [lesson.start for lesson in lessons if lesson.start is not None]
        _push(row, _START, [_stored_start(start) for start in starts], most=LATEST_STARTS)
        _push(row, _TEAM, [start.team for start in starts], most=LATEST_STARTS)
        ends = [epoch_ms(lesson.ended_at) for lesson in lessons if lesson.ended_at is not None]
        _push(row, _END, ends, most=LATEST_STARTS)
        for prefix, is_warm in ((_COLD, False), (_WARM, True)):
            lengths = [
                lesson.startup // _MS + 1
                for lesson in lessons
                if lesson.startup is not None and lesson.is_warm is is_warm
            ]
            _push(row, prefix, lengths, most=LATEST_STARTUPS)


def _stored_start(start: KeyStart) -> list[int]:
    return [epoch_ms(start.at), 0 if start.ready is None else epoch_ms(start.ready)]


def _push(row: Update, prefix: str, new: Sequence[Any], *, most: int) -> None:
    """Put new values, the newest first, before the stored ones, of which the oldest are dropped."""
    if not new:
        return
    names = [f"{prefix}{number}" for number in range(most)]
    row.put |= dict(zip(names, new, strict=False))
    row.shift += [(later, earlier, 0) for earlier, later in zip(names, names[len(new) :], strict=False)]


def warm_history(item: Mapping[str, Any]) -> tuple[str, WarmHistory]:
    """Decode a row; return the warm key with its record. Raises ValueError."""
    job = item.get(_JOB)
    require(job is None or isinstance(job, str), "job is not a text")
    history = WarmHistory(
        starts=tuple(_starts(item)),
        ends=tuple(_instant(at) for at in _list(item, _END, most=LATEST_STARTS)),
        cold=tuple((length - 1) * _MS for length in _list(item, _COLD, most=LATEST_STARTUPS)),
        warm=tuple((length - 1) * _MS for length in _list(item, _WARM, most=LATEST_STARTUPS)),
        job=job,
    )
    return item["sk"], history


def _starts(item: Mapping[str, Any]) -> Iterator[KeyStart]:
    for number, (at, ready) in enumerate(_list(item, _START, most=LATEST_STARTS)):
        team = item.get(f"{_TEAM}{number}") or None
        require(team is None or isinstance(team, str), "a team is not a text")
        yield KeyStart(at=_instant(at), ready=_instant(ready) if ready else None, team=team)


def _list(item: Mapping[str, Any], prefix: str, *, most: int) -> Iterator[Any]:
    values = (item.get(f"{prefix}{number}") for number in range(most))
    return (value for value in values if value)


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC) + ms % 1000 * _MS
