"""What is written about training jobs that went round the queue: the record of one, and its adoption."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.counting import counted_in
from trainmaster.adapters.dynamodb.writes import Operation, Writes, job_item
from trainmaster.core.costs.ledger import month_of
from trainmaster.core.outbox.messages import Errand
from trainmaster.core.planning.queue_entries import running_entry
from trainmaster.core.policy import STRAYS
from trainmaster.core.records import Adoption, Alias, HistoryLine
from trainmaster.core.rules.violation import ViolationRecord

_FREE = "attribute_not_exists(pk)"


def of_record(
    record: ViolationRecord, replaces: ViolationRecord | None, errands: Sequence[Errand], writes: Writes
) -> list[Operation]:
    """The record, if ``replaces`` is the one that is kept, and what it leaves to be done."""
    return [_record(record, replaces, writes), *(writes.errand(STRAYS, errand) for errand in errands)]


def of_adoption(adoption: Adoption, packed: bytes, writes: Writes, *, at: datetime) -> list[Operation]:
    """Every row that submission and claim would have left."""
    job = adoption.job
    spec, live = job.spec, job.live
    assert live is not None, f"{job.name} has no live attempt"
    alias = Alias(job=spec.name, entry_id=spec.entry_id, attempt=live.number)
    line = HistoryLine(at=at, attempt=live.number, from_state=None, to_state=job.state, reason=adoption.note)
    attempt = {**encode(live), "ttl": writes.retention.of_line(at)}
    updates = counted_in(job)
    version = ("policy_version", "policy_version", adoption.policy_version)
    updates[layout.counters_key(spec.pool)].shift.append(version)
    return [
        writes.put(layout.job_key(job.name), job_item(job), only_if=_FREE),
        writes.put(layout.alias_key(live.training_job_name), encode(alias), only_if=_FREE),
        writes.put(layout.request_key(job.name), {"body": packed}),
        writes.put(layout.running_key(spec.pool, job.name), encode(running_entry(job))),
        writes.put(layout.attempt_key(spec.name, spec.entry_id, live.number), attempt),
        writes.history(job, line),
        *of_record(adoption.record, adoption.replaces, adoption.errands, writes),
        *writes.updates(updates),
    ]


def _record(record: ViolationRecord, replaces: ViolationRecord | None, writes: Writes) -> Operation:
    key = layout.violation_key(month_of(record.at), iso(record.at), record.training_job_name)
    item = {**encode(record), "ttl": writes.retention.of_line(record.at)}
    if replaces is None:
        return writes.put(key, item, only_if=_FREE)
    values: dict[str, Any] = {":outcome": replaces.outcome.value, ":revision": replaces.revision}
    return writes.put(key, item, only_if="outcome = :outcome AND revision = :revision", values=values)
