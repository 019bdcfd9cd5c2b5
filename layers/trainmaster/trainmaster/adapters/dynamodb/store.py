"""Implement JobStore over DynamoDB: each call is one conditional transaction."""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from trainmaster.adapters.dynamodb import layout, submissions
from trainmaster.adapters.dynamodb.array_rows import not_a_task
from trainmaster.adapters.dynamodb.array_store import ArrayRows
from trainmaster.adapters.dynamodb.attribute_values import value
from trainmaster.adapters.dynamodb.calls import MAX_ITEMS, ConditionsFailedError, key_attributes
from trainmaster.adapters.dynamodb.codec import decode, encode, iso
from trainmaster.adapters.dynamodb.counting import note_role
from trainmaster.adapters.dynamodb.guard import MOST_SKIPPED, Item, Report, require, unreported
from trainmaster.adapters.dynamodb.history_rows import event_rows
from trainmaster.adapters.dynamodb.pool_marks import PoolMarks
from trainmaster.adapters.dynamodb.retention import Retention
from trainmaster.adapters.dynamodb.stored_names import stored_name
from trainmaster.adapters.dynamodb.updates import Update
from trainmaster.adapters.dynamodb.writes import Operation, Writes
from trainmaster.core.errors import LostRaceError, TeamLimitError, WriteRefusedError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.metric_samples import samples, samples_of_record
from trainmaster.core.monitoring.metrics import Sample
from trainmaster.core.outbox.messages import MessageKind, OutboxMessage
from trainmaster.core.planning.plan_reasons import ToldReasons
from trainmaster.core.planning.refusal_records import RoleChange
from trainmaster.core.planning.snapshot import PreemptionReservation, WaitingJob, WarmPool
from trainmaster.core.records import Admission, Adoption, WriteCondition
from trainmaster.core.rules.violation import ViolationRecord


def _unmeasured(_: Iterable[Sample]) -> None:
    """Take samples and drop them: the default where nothing is measured."""


class DynamoJobStore(ArrayRows, PoolMarks):
    """Passes each write's samples to ``measure`` once the write is done: a lost race is not counted."""

    def __init__(
        self,
        client: Any,
        *,
        table: str,
        retention_days: int,
        measure: Callable[[Iterable[Sample]], None] = _unmeasured,
        report: Report = unreported,
    ) -> None:
        writes = Writes(table=table, retention=Retention(days=retention_days))
        super().__init__(client, table=table, writes=writes, report=report)
        self._measure = measure

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        packed = gzip.compress(body, mtime=0)

        def operations(of_known: str | None) -> list[Operation]:
            rows = submissions.of_submission(job, packed, self._writes, admission=admission)
            return [*rows, *not_a_task(job.name, self._writes, of_known=of_known)]

        try:
            self._write_named(job.name, operations)
        except ConditionsFailedError as error:
            limit = self._limit_reached(job, error.positions, admission)
            if limit is None:
                raise
            raise TeamLimitError(limit) from error

    def count_change(self, pool: str, team: str, *, most: int, at: datetime) -> bool:
        counted = submissions.of_minute(pool, team, self._writes, most=most, at=at)
        return self._rows.change("update_item", **counted["Update"])

    def adopt(self, adoption: Adoption, *, at: datetime) -> None:
        packed = gzip.compress(adoption.body, mtime=0)
        self._transactions.write(submissions.of_adoption(adoption, packed, self._writes, at=at))
        self._measure(samples_of_record(adoption.record, adoption.replaces))

    def record_violation(
        self,
        record: ViolationRecord,
        *,
        replaces: ViolationRecord | None = None,
        messages: Sequence[OutboxMessage] = (),
    ) -> bool:
        operations = submissions.of_record(record, replaces, messages, self._writes)
        try:
            self._transactions.write(operations)
        except ConditionsFailedError:
            return False
        self._measure(samples_of_record(record, replaces))
        return True

    def leave(self, pool: str, messages: Sequence[OutboxMessage]) -> None:
        for message in messages:
            put = self._writes.message(pool, message, only_if="attribute_not_exists(pk)")
            events = list(self._writes.remembered(event_rows([message])))
            if not events:
                self._rows.change("put_item", **put["Put"])
                continue
            with suppress(ConditionsFailedError):
                self._transactions.write([put, *events])

    def leave_once(self, pool: str, message: OutboxMessage, *, subject: str) -> bool:
        mark = Update(put={layout.told(subject): iso(message.at)})
        mark.conditions.append(("attribute_not_exists(#n)", layout.told(subject), None))
        note = self._writes.update(layout.counters_key(pool), mark)
        try:
            event = self._writes.remembered(event_rows([message]))
            self._transactions.write([self._writes.message(pool, message), note, *event])
        except ConditionsFailedError:
            return False
        return True

    def messages(self, pool: str, *, limit: int) -> tuple[OutboxMessage, ...]:
        """Read the oldest messages; those of a later schema and unreadable ones are skipped."""
        items = islice(self._rows.query(layout.message_key(pool, "")[0], page=limit), limit + MOST_SKIPPED)
        rows = (row for row in items if row.get("schema", 1) <= layout.MESSAGE_SCHEMA)
        return tuple(islice(self._understood(rows, message_row), limit))

    def remove_entry(self, pool: str, entry: WaitingJob, job: Job | None) -> None:
        """Remove the rows of queue or parking.

        The team's counts are left to a recount, as it is unknown whether the job was ever counted.
        """
        self._transactions.write(submissions.of_removal(pool, entry, job, self._writes))

    def take(self, pool: str, message: OutboxMessage, *, until: datetime, now: datetime) -> bool:
        return self._rows.change(
            "update_item",
            Key=key_attributes(layout.message_key(pool, message.id)),
            UpdateExpression="SET #lease = :until",
            ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(#lease) OR #lease <= :now)",
            ExpressionAttributeNames={"#lease": stored_name(OutboxMessage, "lease_until")},
            ExpressionAttributeValues={":until": value(iso(until)), ":now": value(iso(now))},
        )

    def done(self, pool: str, message: OutboxMessage) -> None:
        self._rows.change("delete_item", Key=key_attributes(layout.message_key(pool, message.id)))

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        versioned = [change.versioned for change in changes]
        self._transactions.write(self._writes.of(versioned, at=at, condition=condition))
        for change in versioned:
            self._measure(samples(change))
        return tuple(change.after for change in versioned)

    def commit_each(
        self, changes: Sequence[Change], *, at: datetime
    ) -> dict[str, LostRaceError | WriteRefusedError]:
        """Commit the changes; those whose conditions fail are left out and returned with their errors.

        If one row takes no more, halves are committed to find out which.
        """
        if not changes:
            return {}
        versioned = [change.versioned for change in changes]
        operations = self._writes.of(versioned, at=at, condition=None)
        if len(operations) > MAX_ITEMS:
            return self._halves(changes, at=at)
        try:
            self._transactions.write(operations)
        except ConditionsFailedError as error:
            lost = {_job_of(operations[position]): error for position in error.positions}
            others = [change for change in changes if change.after.name not in lost]
            if len(others) == len(changes):
                return _all(changes, error)
            return lost | self.commit_each(others, at=at)
        except LostRaceError as error:
            return _all(changes, error)
        except WriteRefusedError as error:
            return _all(changes, error) if len(changes) == 1 else self._halves(changes, at=at)
        self._measure(sample for change in versioned for sample in samples(change))
        return {}

    def _halves(
        self, changes: Sequence[Change], *, at: datetime
    ) -> dict[str, LostRaceError | WriteRefusedError]:
        half = len(changes) // 2
        return self.commit_each(changes[:half], at=at) | self.commit_each(changes[half:], at=at)

    def told_reasons(self, pool: str) -> ToldReasons:
        item = self._rows.get(layout.told_key(pool))
        return next(self._understood([item] if item else [], told_row), ToldReasons())

    def note_told(self, pool: str, reasons: ToldReasons) -> None:
        """Remember the reasons as sent.

        Two concurrent passes may each overwrite the other's reasons: then neither is remembered.
        """
        key, codes = layout.told_key(pool), json.dumps(reasons.codes, separators=(",", ":"))
        packed = gzip.compress(codes.encode(), mtime=0)
        put = self._writes.put(
            key,
            {"ver": reasons.version + 1, "codes": packed},
            only_if="attribute_not_exists(ver) OR ver = :ver",
            values={":ver": reasons.version},
        )
        if not self._rows.change("put_item", **put["Put"]):
            self._rows.change("delete_item", Key=key_attributes(key))

    def limit_hold(self, pool: str, hold: PreemptionReservation, until: datetime) -> None:
        limited = value(encode(replace(hold, until=until)))
        self._change_hold(pool, hold, "SET #hold = :new", {":new": limited})

    def drop_hold(self, pool: str, hold: PreemptionReservation) -> None:
        self._change_hold(pool, hold, "REMOVE #hold", {})

    def change_warm(
        self,
        pool: str,
        before: WarmPool | None,
        after: WarmPool | None,
        *,
        at: datetime,
        retained: timedelta | None = None,
    ) -> None:
        self._transactions.write(self._writes.of_warm(pool, before, after, at=at, retained=retained))

    def note_role(self, pool: str, change: RoleChange) -> bool:
        role = Update()
        note_role(role, change)
        noted = self._writes.update(layout.counters_key(pool), role)
        return self._rows.change("update_item", **noted["Update"])

    def warned(self, team: str, month: str) -> None:
        self._note(layout.month_key(team, month), layout.WARNED, True)

    def _change_hold(
        self, pool: str, hold: PreemptionReservation, expression: str, values: dict[str, Any]
    ) -> None:
        """Change exactly the hold that was read; another pass may have been faster."""
        self._rows.change(
            "update_item",
            Key=key_attributes(layout.counters_key(pool)),
            UpdateExpression=expression,
            ConditionExpression="#hold = :old",
            ExpressionAttributeNames={"#hold": layout.hold_of(hold.preemptor)},
            ExpressionAttributeValues={":old": value(encode(hold)), **values},
        )


def _all(
    changes: Sequence[Change], error: LostRaceError | WriteRefusedError
) -> dict[str, LostRaceError | WriteRefusedError]:
    return {change.after.name: error for change in changes}


def _job_of(operation: Operation) -> str:
    """Return the name of the job whose own row the operation writes; "" if it writes another row."""
    key = operation.get("Put", {}).get("Item", {"pk": {"S": ""}, "sk": {"S": ""}})
    return str(key["pk"]["S"]).removeprefix("J#") if key["sk"]["S"] == "job" else ""


def told_row(item: Item) -> ToldReasons:
    codes = json.loads(gzip.decompress(bytes(item["codes"])))
    return ToldReasons(
        version=int(item["ver"]), codes={name: (int(ver), str(code)) for name, (ver, code) in codes.items()}
    )


def message_row(item: Item) -> OutboxMessage:
    message = decode(OutboxMessage, item)
    require(item["sk"] == message.id, f"it is message {message.id}")
    if message.kind is MessageKind.TELL:
        require(message.notice is not None, "it has nothing to tell")
    if message.kind is MessageKind.STOP_UNMANAGED:
        require(message.training_job_name is not None and message.found is not None, "it names no job")
    if message.kind is MessageKind.RELEASE_DEPENDENTS:
        require(message.parent is not None, "it names no parent")
    return message
