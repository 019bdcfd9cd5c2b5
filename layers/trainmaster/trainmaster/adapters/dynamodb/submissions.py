"""Build the rows of a new or adopted job.

The limits of its team are conditions of the same transaction, so they cost no read.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import key_attributes
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.counting import counted_in, enters_lane
from trainmaster.adapters.dynamodb.dependency_rows import of_new_conditions
from trainmaster.adapters.dynamodb.history_rows import event_rows, submission_rows
from trainmaster.adapters.dynamodb.retention import SUBMISSION_COUNTS, ttl
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.adapters.dynamodb.writes import Operation, Writes, job_item
from trainmaster.core.costs.ledger import month_of
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.queue_entries import running_entry, waiting_entry
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.records import Admission, Adoption, Alias, HistoryLine, SubmissionFreeze
from trainmaster.core.rules.violation import ViolationRecord

MINUTE_MS = 60_000

_JOB, _ALIAS, _TEAM, _MINUTE = range(4)
"""Positions in the transaction of the rows whose conditions may fail."""


def of_submission(job: Job, packed: bytes, writes: Writes, *, admission: Admission | None) -> list[Operation]:
    """Submit a job, if the name is free, the team within its limits and the pool not about to be removed."""
    spec = job.spec
    entry = waiting_entry(job)
    alias = Alias(job=job.name, entry_id=spec.entry_id, attempt=0)
    line = HistoryLine(at=spec.submitted_at, attempt=0, from_state=None, to_state=job.state, reason=None)
    return [
        writes.put(
            layout.job_key(job.name),
            job_item(job, at=spec.submitted_at),
            only_if="attribute_not_exists(pk)",
        ),
        writes.put(layout.alias_key(job.name), encode(alias), only_if="attribute_not_exists(pk)"),
        *of_admission(job, admission, writes, is_parked=job.is_parked),
        writes.put(layout.request_key(job.name), {"body": packed}),
        *writes.puts(layout.row_keys(spec.pool, entry), encode(entry)),
        writes.history(job, line),
        *([] if job.is_parked else _enter_lane(job, entry, writes)),
        *of_new_conditions(job, job.after.conditions if job.after else (), writes, at=spec.submitted_at),
        *(_mark_team(job, writes) if admission is not None and admission.marks_team else []),
        *writes.updates(submission_rows(job, ttl=writes.retention.of_history(spec.submitted_at))),
    ]


def of_admission(
    job: Job, admission: Admission | None, writes: Writes, *, is_parked: bool = True
) -> list[Operation]:
    """Count one more that waits with its team, which must be within its limits and may submit now.

    Args:
        job: The new job, or the template of a new array, which counts as one that is parked.
        admission: What its team may have; None: nothing is asked.
        writes: Builds the operations.
        is_parked: Whether it waits for something else than its turn.
    """
    spec = job.spec
    team = writes.update(layout.team_key(spec.pool, spec.team), _one_more(job, admission, is_parked))
    if admission is None:
        return [team]
    return [team, _this_minute(job, admission, writes)]


def _enter_lane(job: Job, entry: WaitingJob, writes: Writes) -> list[Operation]:
    updates: Updates = defaultdict(Update)
    enters_lane(updates, job.spec.pool, entry)
    return writes.updates(updates)


def _mark_team(job: Job, writes: Writes) -> list[Operation]:
    """Mark the team in the pool's counters: should the team's row get lost, the mark shows it."""
    spec = job.spec
    known = Update(put={layout.known_team(spec.team): True})
    return [writes.update(layout.counters_key(spec.pool), known)]


def of_removal(pool: str, entry: WaitingJob, job: Job | None, writes: Writes) -> list[Operation]:
    """Drop the rows of queue or parking as they were read; the job is gone (None) or still as it was read.

    One of the queue's three rows may be missing, as an earlier release left it.
    """
    as_seen = "ver = :seen" if entry.is_parked else "attribute_not_exists(pk) OR ver = :seen"
    deletes = [
        {
            "TableName": writes.table,
            "Key": key_attributes(key),
            "ConditionExpression": as_seen,
            "ExpressionAttributeValues": to_attributes({":seen": entry.ver}),
        }
        for key in layout.row_keys(pool, entry)
    ]
    check: dict[str, Any] = {
        "TableName": writes.table,
        "Key": key_attributes(layout.job_key(entry.name)),
        "ConditionExpression": "attribute_not_exists(pk)" if job is None else "ver = :ver",
    }
    if job is not None:
        check["ExpressionAttributeValues"] = to_attributes({":ver": job.ver})
    return [{"ConditionCheck": check}, *({"Delete": delete} for delete in deletes)]


def name_was_taken(positions: Collection[int]) -> bool:
    return _JOB in positions or _ALIAS in positions


def team_refused(positions: Collection[int]) -> bool:
    """Tell whether the team's row refused: too many wait, or the policy is being changed; the row says."""
    return _TEAM in positions


def minute_was_full(positions: Collection[int]) -> bool:
    return _MINUTE in positions


def _one_more(job: Job, admission: Admission | None, is_parked: bool) -> Update:  # noqa: FBT001
    spec = job.spec
    update = Update(add=Counter({layout.WAITING: 1, layout.PARKED: int(is_parked)}))
    if admission is not None:
        most = admission.limits.max_waiting
        update.conditions.append(("attribute_not_exists(#n) OR #n < :v", layout.WAITING, most))
        update.any_of.append(_open_to(admission.policy_version, at=spec.submitted_at))
        if admission.marks_team:
            update.put[layout.COUNTED] = True
    return update


def of_freeze(freeze: SubmissionFreeze, writes: Writes) -> list[Operation]:
    """Close each pool to each team; a team without a row in the pool gets one."""
    closed = {layout.CLOSED_BELOW: freeze.version + 1, layout.CLOSED_UNTIL: epoch_ms(freeze.until)}
    update = Update(put=closed, any_of=[_open_to(freeze.version, at=freeze.at)])
    return [writes.update(key, update) for key in _rows(freeze)]


def of_reopening(freeze: SubmissionFreeze, writes: Writes) -> list[Operation]:
    mine = ("#n = :v", layout.CLOSED_UNTIL, epoch_ms(freeze.until))
    update = Update(remove=[layout.CLOSED_BELOW, layout.CLOSED_UNTIL], conditions=[mine])
    return [writes.update(key, update) for key in _rows(freeze)]


def _rows(freeze: SubmissionFreeze) -> list[layout.Key]:
    return [layout.team_key(pool, team) for pool in freeze.pools for team in freeze.teams]


def _open_to(version: int, *, at: datetime) -> list[tuple[str, str, Any]]:
    """Require, as alternatives, that the pool is open to submissions that this policy version admitted."""
    return [
        ("attribute_not_exists(#n)", layout.CLOSED_BELOW, None),
        ("#n <= :v", layout.CLOSED_BELOW, version),
        ("#n <= :v", layout.CLOSED_UNTIL, epoch_ms(at)),
    ]


def _this_minute(job: Job, admission: Admission, writes: Writes) -> Operation:
    most = admission.limits.max_submissions_per_minute
    return of_minute(job.spec.pool, job.spec.team, writes, most=most, at=job.spec.submitted_at)


def of_minute(pool: str, team: str, writes: Writes, *, most: int, at: datetime) -> Operation:
    """Count one more submission, or change of a job, of the team in this minute."""
    update = Update(add=Counter({"submissions": 1}), put={"ttl": ttl(at, SUBMISSION_COUNTS)})
    update.conditions.append(("attribute_not_exists(#n) OR #n < :v", "submissions", most))
    return writes.update(layout.minute_key(pool, team, epoch_ms(at) // MINUTE_MS), update)


_FREE = "attribute_not_exists(pk)"


def of_record(
    record: ViolationRecord,
    replaces: ViolationRecord | None,
    messages: Sequence[OutboxMessage],
    writes: Writes,
) -> list[Operation]:
    """Write the record if ``replaces`` is the stored one, with the messages that follow from it."""
    left = (writes.message(UNMANAGED, message) for message in messages)
    return [_record(record, replaces, writes), *left, *writes.remembered(event_rows(messages))]


def of_adoption(adoption: Adoption, packed: bytes, writes: Writes, *, at: datetime) -> list[Operation]:
    """Write every row that submission and claim would have left."""
    job = adoption.job
    spec, live = job.spec, job.live_attempt
    alias = Alias(job=spec.name, entry_id=spec.entry_id, attempt=live.number)
    line = HistoryLine(at=at, attempt=live.number, from_state=None, to_state=job.state, reason=adoption.note)
    attempt = {**encode(live), "ttl": writes.retention.of_line(at)}
    updates = counted_in(job)
    version = ("policy_version", "policy_version", adoption.policy_version)
    updates[layout.counters_key(spec.pool)].shift.append(version)
    return [
        writes.put(layout.job_key(job.name), job_item(job, at=at), only_if=_FREE),
        writes.put(layout.alias_key(live.training_job_name), encode(alias), only_if=_FREE),
        writes.put(layout.request_key(job.name), {"body": packed}),
        writes.put(layout.running_key(spec.pool, job.name), encode(running_entry(job))),
        writes.put(layout.attempt_key(spec.name, spec.entry_id, live.number), attempt),
        writes.history(job, line),
        *of_record(adoption.record, adoption.replaces, adoption.messages, writes),
        *writes.updates(updates),
    ]


def _record(record: ViolationRecord, replaces: ViolationRecord | None, writes: Writes) -> Operation:
    key = layout.violation_key(month_of(record.at), iso(record.at), record.training_job_name)
    item = {**encode(record), "ttl": writes.retention.of_line(record.at)}
    if replaces is None:
        return writes.put(key, item, only_if=_FREE)
    values: dict[str, Any] = {":outcome": replaces.outcome.value, ":revision": replaces.revision}
    return writes.put(key, item, only_if="outcome = :outcome AND revision = :revision", values=values)
