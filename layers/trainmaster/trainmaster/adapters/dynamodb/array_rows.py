"""Write arrays: the row of each, its request, and the jobs that its tasks become.

Bits and counts of tasks are attributes of their own (``array_counting``); all else is written on condition of
the row's ``ver``. The names of tasks are kept without rows: see ``not_a_task``.
"""

import gzip
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import array_layout as rows
from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_counting import add_bits
from trainmaster.adapters.dynamodb.array_layout import array_key
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import key_attributes
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.counting import enters_lane, places
from trainmaster.adapters.dynamodb.dependency_rows import of_new_conditions
from trainmaster.adapters.dynamodb.history_rows import event_rows, submission_rows
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.adapters.dynamodb.writes import Operation, Writes, job_item
from trainmaster.core.arrays.array_model import Array, ArrayRequest
from trainmaster.core.arrays.tasks import parse_task_name
from trainmaster.core.jobs.index_sets import packed
from trainmaster.core.jobs.model import Job
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.records import Alias, HistoryLine
from trainmaster.core.request.strict_json import canonical

_FREE = "attribute_not_exists(pk)"


def array_item(array: Array) -> dict[str, Any]:
    """Encode a new array; what its tasks add to later is absent."""
    item: dict[str, Any] = {
        rows.ENTRY_ID: array.entry_id,
        "job": encode(array.template),
        "tasks": zlib.compress(packed(array.indices)),
        rows.FIRST_INDEX: array.indices[0],
        rows.LAST_INDEX: array.indices[-1],
        "unexpanded": bits_bytes(array.unexpanded),
        "ver": array.ver,
        "stop_after": array.stop_after_failures,
        "first_numbering": None if array.first_numbering is None else encode(array.first_numbering),
        **_changing(array),
    }
    return {name: content for name, content in item.items() if content is not None}


def _changing(array: Array) -> dict[str, Any]:
    """Return the attributes that steps of an array change; None: it has none."""
    return {
        rows.AT_MOST: array.at_most,
        rows.ARRAY_HELD: array.held,
        "held_because": array.held_because,
        rows.AWAITED: sorted(array.awaited) or None,
        "cancelled": array.cancelled or None,
        "to_stop": bits_bytes(array.to_stop) if array.to_stop else None,
        "stopped_by": array.stopped_by,
        rows.ENDED_AT: None if array.ended_at is None else iso(array.ended_at),
        "rerun_of": array.rerun_of,
        "folder": array.folder,
    }


def bits_bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def not_a_task(name: str, writes: Writes, *, of_known: str | None = None) -> list[Operation]:
    """Require that no array has a task of this name; costs nothing where no task could be named so.

    Args:
        name: Of a job or an array that is about to be stored.
        writes: Builds the check.
        of_known: Entry id of the array of that stem that is known not to have the index; None: none is.
    """
    task = parse_task_name(name)
    if task is None:
        return []
    condition, values = "#first > :index OR #last < :index", {":index": task.index}
    names = {"#first": rows.FIRST_INDEX, "#last": rows.LAST_INDEX}
    check: dict[str, Any] = {"TableName": writes.table, "Key": key_attributes(array_key(task.array))}
    if of_known is not None:
        condition, names = "#entry = :entry", {"#entry": rows.ENTRY_ID}
        check["ExpressionAttributeValues"] = to_attributes({":entry": of_known})
    else:
        check["ExpressionAttributeValues"] = to_attributes(values)
    check["ConditionExpression"] = f"{_FREE} OR {condition}"
    check["ExpressionAttributeNames"] = names
    return [{"ConditionCheck": check}]


def of_new_array(array: Array, request: ArrayRequest, writes: Writes, *, marks_team: bool) -> list[Operation]:
    """Return the rows of a new array, behind those that its team and its name are checked by."""
    template, at = array.template, array.template.spec.submitted_at
    conditions = template.after.conditions if template.after else ()
    marked = Update(put={rows.HAS_ARRAYS: True})
    if marks_team:
        marked.put[layout.known_team(template.spec.team)] = True
    return [
        writes.put(rows.array_request_key(array.name), {"body": gzip.compress(request.packed(), mtime=0)}),
        writes.put(rows.open_array_key(template.spec.pool, array.name), {"team": template.spec.team}),
        writes.update(layout.counters_key(template.spec.pool), marked),
        *of_new_conditions(template, conditions, writes, at=at, is_array=True),
    ]


def of_array_name(array: Array, writes: Writes) -> list[Operation]:
    """Return the array's row and the alias that keeps its name from jobs, each only if there is none."""
    alias = Alias(job=array.name, entry_id=array.entry_id, attempt=0)
    return [
        writes.put(array_key(array.name), array_item(array), only_if=_FREE),
        writes.put(layout.alias_key(array.name), encode(alias), only_if=_FREE),
    ]


def of_expansion(
    array: Array, tasks: Sequence[tuple[Job, Mapping[str, Any]]], writes: Writes, *, at: datetime
) -> tuple[list[Operation], dict[int, int]]:
    """Return the operations that make jobs of tasks, and by operation the position of the task it names."""
    updates: Updates = defaultdict(Update)
    update = updates[array_key(array.name)]
    left = array.unexpanded
    operations: list[Operation] = []
    named: dict[int, int] = {}
    for job, body in tasks:
        assert job.spec.array is not None, job.name
        position = job.spec.array.position
        left &= ~(1 << position)
        named |= {len(operations): position, len(operations) + 1: position}
        operations += _of_task(job, body, updates, writes, at=at)
    update.put |= {"unexpanded": bits_bytes(left), "ver": array.ver + 1}
    if array.awaited:  # a task that is a job has the mark itself
        kept = array.awaited - {job.spec.array.index for job, _ in tasks if job.spec.array is not None}
        update.put[rows.AWAITED] = sorted(kept)
    update.conditions.append(("#n = :v", "ver", array.ver))
    return [*operations, *writes.updates(updates)], named


def _of_task(
    job: Job, body: Mapping[str, Any], updates: Updates, writes: Writes, *, at: datetime
) -> list[Operation]:
    spec, entry = job.spec, waiting_entry(job)
    places(updates, job, +1)
    enters_lane(updates, spec.pool, entry)
    for key, update in submission_rows(job, ttl=writes.retention.of_history(at)).items():
        updates[key].add.update(update.add)
        updates[key].put |= update.put
    alias = Alias(job=job.name, entry_id=spec.entry_id, attempt=0)
    line = HistoryLine(at=at, attempt=0, from_state=None, to_state=job.state, reason=None)
    packed_body = gzip.compress(canonical(body), mtime=0)
    return [
        writes.put(layout.job_key(job.name), job_item(job, at=at), only_if=_FREE),
        writes.put(layout.alias_key(job.name), encode(alias), only_if=_FREE),
        writes.put(layout.request_key(job.name), {"body": packed_body}),
        *writes.puts(layout.row_keys(spec.pool, entry), encode(entry)),
        writes.history(job, line),
    ]


def of_array_step(
    before: Array, after: Array, writes: Writes, *, messages: Iterable[OutboxMessage]
) -> list[Operation]:
    """Return the operations of a step of an array that makes no jobs."""
    left = list(messages)
    pool, name = before.template.spec.pool, before.name
    operations = [writes.update(array_key(name), _step(before, after, writes))]
    operations += [writes.message(pool, message) for message in left]
    operations += writes.remembered(event_rows(left))
    if after.ended_at is not None and before.ended_at is None:
        operations += _of_end(after, after.ended_at, writes)
    return operations


def _step(before: Array, after: Array, writes: Writes) -> Update:
    update = Update(put={"ver": before.ver + 1})
    update.conditions.append(("#n = :v", "ver", before.ver))
    was, now = _changing(before), _changing(after)
    update.put |= {name: now[name] for name in now if now[name] != was[name] and now[name] is not None}
    update.remove += [name for name in now if now[name] is None and was[name] is not None]
    if after.template != before.template:
        update.put["job"] = encode(after.template)
    if after.unexpanded != before.unexpanded:
        update.put["unexpanded"] = bits_bytes(after.unexpanded)
    if after.recent != before.recent:
        update.put[rows.RECENT] = list(after.recent)
        seen = ("#n = :v", list(before.recent)) if before.recent else ("attribute_not_exists(#n)", None)
        update.conditions.append((seen[0], rows.RECENT, seen[1]))
    ends = (before.ends, after.ends)
    for prefix, attribute in _BITS:
        known, wanted = (getattr(end, attribute) for end in ends)
        add_bits(update, prefix, wanted & ~known)
    if after.ended_at is not None and before.ended_at is None:
        update.put["ttl"] = writes.retention.of_final(after.ended_at)
        # A dependent is stored on condition that the array has not ended; later ends release it by a message.
        had = ("#n = :v", True) if before.template.has_dependents else ("attribute_not_exists(#n)", None)
        update.conditions.append((had[0], rows.HAS_DEPENDENTS, had[1]))
    return update


def of_recounted_array(before: Array, after: Array, writes: Writes) -> Operation:
    """Return the update of a row whose tasks were counted again, if it is still as it was read."""
    update = _step(before, after, writes)
    counted = ((rows.WAITING, "waiting"), (rows.HELD, "held"), (rows.RUNNING, "running"))
    for name, attribute in counted:
        had = getattr(before.jobs, attribute)
        update.put[name] = getattr(after.jobs, attribute)
        update.conditions.append(("#n = :v" if had else "attribute_not_exists(#n) OR #n = :v", name, had))
    return writes.update(array_key(before.name), update)


_BITS = (
    (rows.COMPLETED, "completed"),
    (rows.FAILED, "failed"),
    (rows.STOPPED, "stopped"),
    (rows.NAME_TAKEN, "name_taken"),
    (rows.ORPHANED, "orphaned"),
)


def _of_end(array: Array, ended_at: datetime, writes: Writes) -> list[Operation]:
    """The array is none of the pool's open ones any more, and its rows expire with those of its last task."""
    spec, ttl = array.template.spec, writes.retention.of_final(ended_at)
    open_row = {"TableName": writes.table, "Key": key_attributes(rows.open_array_key(spec.pool, array.name))}
    counted = Update(add=Counter({layout.WAITING: -1, layout.PARKED: -1}))
    listed = rows.ended_array_key(spec.team, iso(ended_at), array.name)
    return [
        {"Delete": open_row},
        writes.put(listed, {"ttl": ttl}),
        writes.update(layout.team_key(spec.pool, spec.team), counted),
        writes.update(rows.array_request_key(array.name), Update(put={"ttl": ttl})),
        writes.update(layout.alias_key(array.name), Update(put={"ttl": ttl})),
    ]
