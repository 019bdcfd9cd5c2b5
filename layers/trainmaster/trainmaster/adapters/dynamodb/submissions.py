"""A new job's rows, and the limits of its team as conditions of the same transaction: they cost no read."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.adapters.dynamodb.counting import Update
from trainmaster.adapters.dynamodb.writes import Operation, Writes, job_item
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.records import Admission, Alias, Closing, HistoryLine

MINUTE_MS = 60_000
COUNTS_KEPT = timedelta(hours=1)
"""How long a minute's count of submissions stays in the table."""

_JOB, _ALIAS, _TEAM, _MINUTE = range(4)
"""Where the rows that may refuse stand in the transaction."""


def of_submission(job: Job, packed: bytes, writes: Writes, *, admission: Admission | None) -> list[Operation]:
    """The name must be free, the team within its limits, and nobody about to remove the pool."""
    spec = job.spec
    entry = waiting_entry(job)
    alias = Alias(job=job.name, entry_id=spec.entry_id, attempt=0)
    line = HistoryLine(at=spec.submitted_at, attempt=0, from_state=None, to_state=job.state, reason=None)
    return [
        writes.put(layout.job_key(job.name), job_item(job), only_if="attribute_not_exists(pk)"),
        writes.put(layout.alias_key(job.name), encode(alias), only_if="attribute_not_exists(pk)"),
        writes.update(layout.team_key(spec.pool, spec.team), _one_more(job, admission)),
        *([] if admission is None else [_this_minute(job, admission, writes)]),
        writes.put(layout.request_key(job.name), {"body": packed}),
        writes.put(layout.queue_key(spec.pool, entry), encode(entry)),
        writes.history(job, line),
    ]


def name_was_taken(positions: Collection[int]) -> bool:
    return _JOB in positions or _ALIAS in positions


def team_refused(positions: Collection[int]) -> bool:
    """Too many wait, or the policy is being changed: the row itself says which."""
    return _TEAM in positions


def minute_was_full(positions: Collection[int]) -> bool:
    return _MINUTE in positions


def _one_more(job: Job, admission: Admission | None) -> Update:
    spec = job.spec
    lane = layout.waiting_in(layout.lane(spec.shapes, spec.choice))
    update = Update(add=Counter({lane: 1, layout.WAITING: 1}))
    if admission is not None:
        most = admission.limits.max_waiting
        update.conditions.append(("attribute_not_exists(#n) OR #n < :v", layout.WAITING, most))
        update.any_of.append(_open_to(admission.policy_version, at=spec.submitted_at))
    return update


def of_closing(closing: Closing, writes: Writes) -> list[Operation]:
    """Close each pool to each team; who has no row in it yet gets one."""
    closed = {layout.CLOSED_BELOW: closing.version + 1, layout.CLOSED_UNTIL: epoch_ms(closing.until)}
    update = Update(put=closed, any_of=[_open_to(closing.version, at=closing.at)])
    return [writes.update(key, update) for key in _rows(closing)]


def of_reopening(closing: Closing, writes: Writes) -> list[Operation]:
    mine = ("#n = :v", layout.CLOSED_UNTIL, epoch_ms(closing.until))
    update = Update(remove=[layout.CLOSED_BELOW, layout.CLOSED_UNTIL], conditions=[mine])
    return [writes.update(key, update) for key in _rows(closing)]


def _rows(closing: Closing) -> list[layout.Key]:
    return [layout.team_key(pool, team) for pool in closing.pools for team in closing.teams]


def _open_to(version: int, *, at: datetime) -> list[tuple[str, str, Any]]:
    """Nobody has closed the pool to those who were judged by this version."""
    return [
        ("attribute_not_exists(#n)", layout.CLOSED_BELOW, None),
        ("#n <= :v", layout.CLOSED_BELOW, version),
        ("#n <= :v", layout.CLOSED_UNTIL, epoch_ms(at)),
    ]


def _this_minute(job: Job, admission: Admission, writes: Writes) -> Operation:
    at, most = job.spec.submitted_at, admission.limits.max_submissions_per_minute
    update = Update(add=Counter({"submissions": 1}), put={"ttl": _ttl(at)})
    update.conditions.append(("attribute_not_exists(#n) OR #n < :v", "submissions", most))
    key = layout.minute_key(job.spec.pool, job.spec.team, epoch_ms(at) // MINUTE_MS)
    return writes.update(key, update)


def _ttl(at: datetime) -> int:
    return int((at + COUNTS_KEPT).timestamp())
