"""Build the operations of one commit: every row that follows from the jobs' changes, each item once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes, value
from trainmaster.adapters.dynamodb.codec import encode, iso
from trainmaster.adapters.dynamodb.counting import bill_warm, counted, enters_lane, warm_changed
from trainmaster.adapters.dynamodb.history_rows import (
    HistoryRow,
    event_rows,
    history_rows,
    wait_rows,
    warm_rows,
)
from trainmaster.adapters.dynamodb.layout import Key
from trainmaster.adapters.dynamodb.retention import Retention
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.costs.ledger import PreemptionEntry, month_of
from trainmaster.core.history.journal import warm_pool_over
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import messages_of
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.queue_entries import entry_of
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool
from trainmaster.core.records import Alias, HistoryLine, WriteCondition

Operation = dict[str, Any]
"""One element of TransactItems."""
UNMARKED = "attribute_not_exists(has_dependents)"
"""A job that had no dependents when it was read has none still: a child stored since is never overlooked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Turns changes into TransactItems for one table."""

    table: str
    retention: Retention

    def of(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None
    ) -> list[Operation]:
        """Return all operations of one commit; the jobs in ``changes`` already carry their new versions."""
        sums = counted(changes, at=at, condition=condition)
        wait_rows(sums, changes, at=at, ttl=self.retention.of_history(at))
        operations = [operation for change in changes for operation in self._of_change(change, sums, at=at)]
        messages = [
            (change.after.spec.pool, left) for change in changes for left in messages_of(change, at=at)
        ]
        operations += [self.message(pool, message) for pool, message in messages]
        if condition is not None:
            operations += self._unchanged(condition)
            operations += self._reused(changes[0].after, condition.reuses, at=at)
        operations += self.remembered(history_rows(changes, at=at))
        operations += self.remembered(event_rows(message for _, message in messages))
        return operations + self.updates(sums)

    def remembered(self, rows: Iterable[HistoryRow]) -> Iterable[Operation]:
        """Put rows of the history, which are never changed later."""
        return (self.put(key, {**stored, "ttl": self.retention.of_history(at)}) for key, stored, at in rows)

    def updates(self, updates: Updates) -> list[Operation]:
        return [self.update(key, update) for key, update in updates.items() if update.says_something]

    def message(self, pool: str, message: OutboxMessage, *, only_if: str | None = None) -> Operation:
        item = {**encode(message), "schema": message.schema}
        return self.put(layout.message_key(pool, message.id), item, only_if=only_if)

    def of_warm(
        self,
        pool: str,
        before: WarmPool | None,
        after: WarmPool | None,
        *,
        at: datetime,
        retained: timedelta | None = None,
    ) -> list[Operation]:
        """Move a warm pool from one form to the next with its counters, and bill it when it is gone."""
        updates: Updates = defaultdict(Update)
        for warm, sign in ((before, -1), (after, +1)):
            if warm is not None:
                warm_changed(updates, pool, warm, sign)
        if before is not None and after is None:
            bill_warm(updates, before, at=at, retained=retained)
            gone = warm_rows(pool, warm_pool_over(before, at=at, retained=retained))
            return [self._warm_row(pool, before, None), *self.updates(updates), *self.remembered(gone)]
        return [self._warm_row(pool, before, after), *self.updates(updates)]

    def _warm_row(self, pool: str, before: WarmPool | None, after: WarmPool | None) -> Operation:
        known = before or after
        assert known is not None
        key = layout.warm_key(pool, known.training_job_name)
        if before is None:
            return self.put(key, encode(known), only_if="attribute_not_exists(pk)")
        condition = "expires_at = :at AND releasing = :r"
        values = {":at": iso(before.expires_at), ":r": before.releasing}
        if after is not None:
            return self.put(key, encode(after), only_if=condition, values=values)
        delete = {
            "TableName": self.table,
            "Key": _key(key),
            "ConditionExpression": condition,
            "ExpressionAttributeValues": to_attributes(values),
        }
        return {"Delete": delete}

    def _of_change(self, change: Change, sums: Updates, *, at: datetime) -> Iterable[Operation]:
        before, after = change.before, change.after
        item = job_item(after, at=at)
        if after.is_final:
            item["ttl"] = self.retention.of_final(after.ended_at or at)
            yield from self._expire(after, item["ttl"])
        only_if = "ver = :ver" if before.has_dependents else f"ver = :ver AND {UNMARKED}"
        yield self.put(layout.job_key(after.name), item, only_if=only_if, values={":ver": before.ver})
        yield from self._rows(before, after, sums)
        yield from self._attempt(change, at=at)
        yield from self._left_warm(change)
        yield from self._taken(change, at=at)
        if before.state is not after.state or change.note is not None:
            yield self.history(after, _line(change, at=at))

    def _rows(self, before: Job, after: Job, sums: Updates) -> Iterable[Operation]:
        """Move the job's rows of queue, parking or pool."""
        pool, left, entry = after.spec.pool, entry_of(before), entry_of(after)
        old, new = layout.row_keys(pool, left), layout.row_keys(pool, entry)
        if isinstance(entry, WaitingJob):
            if new == old and isinstance(left, WaitingJob) and entry == replace(left, ver=entry.ver):
                return  # no more than its version: an entry says the one that it was put with
            if new != old and not entry.is_parked:
                enters_lane(sums, pool, entry)
        yield from ({"Delete": {"TableName": self.table, "Key": _key(key)}} for key in old if key not in new)
        yield from self.puts(new, {} if entry is None else encode(entry))

    def _attempt(self, change: Change, *, at: datetime) -> Iterable[Operation]:
        attempt = change.ended or change.after.live
        if attempt is None or attempt == change.before.live:
            return
        spec = change.after.spec
        ttl = self.retention.of_line(at)
        yield self.put(
            layout.attempt_key(spec.name, spec.entry_id, attempt.number),
            {**encode(attempt), "ttl": ttl},
        )
        if change.before.live is None and attempt.number > 0:
            yield self._alias(change.after, attempt, ttl)

    def _alias(self, job: Job, attempt: Attempt, ttl: int) -> Operation:
        alias = Alias(job=job.name, entry_id=job.spec.entry_id, attempt=attempt.number)
        return self.put(
            layout.alias_key(attempt.training_job_name),
            {**encode(alias), "ttl": ttl},
            only_if="attribute_not_exists(pk) OR entry_id = :entry",
            values={":entry": job.spec.entry_id},
        )

    def _left_warm(self, change: Change) -> Iterable[Operation]:
        if change.leaves_warm is not None:
            key = layout.warm_key(change.after.spec.pool, change.leaves_warm.training_job_name)
            yield self.put(key, encode(change.leaves_warm), only_if="attribute_not_exists(pk)")

    def _reused(self, by: Job, reused: WarmPool | None, *, at: datetime) -> Iterable[Operation]:
        """Delete the warm pool that the start reuses, if it still exists and is not being released."""
        if reused is None:
            return []
        over = warm_pool_over(reused, at=at, reused_by=by)
        delete = {
            "TableName": self.table,
            "Key": _key(layout.warm_key(by.spec.pool, reused.training_job_name)),
            "ConditionExpression": "attribute_exists(pk) AND releasing = :no",
            "ExpressionAttributeValues": {":no": value(False)},
        }
        return [{"Delete": delete}, *self.remembered(warm_rows(by.spec.pool, over))]

    def _taken(self, change: Change, *, at: datetime) -> Iterable[Operation]:
        """Write an entry of the preemption ledger: which team's job preempted which, and what was lost."""
        attempt, spec = change.ended, change.after.spec
        if attempt is None or attempt.preempted_for is None or change.after.state is not JobState.PREEMPTED:
            return
        before, after = change.before.spent.wasted, change.after.spent.wasted
        lost = after.get("preemption", 0) - before.get("preemption", 0)
        entry = PreemptionEntry(
            at=at,
            preemptor=attempt.preempted_for.name,
            preemptor_team=attempt.preempted_for.team or spec.team,
            victim=spec.name,
            victim_team=spec.team,
            instance_seconds_lost=lost * attempt.shape.instances,
            cents_lost=None if attempt.bill.cents is None else attempt.bill.by.get("preemption", 0),
        )
        month = attempt.claim.month or month_of(at)
        key = layout.taking_key(spec.team, month, iso(at), spec.name)
        yield self.put(key, {**encode(entry), "ttl": self.retention.of_line(at)})

    def history(self, job: Job, line: HistoryLine) -> Operation:
        key = layout.history_key(job.name, job.spec.entry_id, job.ver)
        return self.put(key, {**encode(line), "ttl": self.retention.of_line(line.at)})

    def _expire(self, job: Job, ttl: int) -> Iterable[Operation]:
        for key in (layout.request_key(job.name), layout.alias_key(job.name)):
            yield self.update(key, Update(put={"ttl": ttl}))

    def _unchanged(self, condition: WriteCondition) -> list[Operation]:
        if condition.still_waiting is None:
            return []
        check = {
            "TableName": self.table,
            "Key": _key(layout.job_key(condition.still_waiting.name)),
            "ConditionExpression": "ver = :ver",
            "ExpressionAttributeValues": {":ver": value(condition.still_waiting.ver)},
        }
        return [{"ConditionCheck": check}]

    def put(
        self,
        key: Key,
        item: Mapping[str, Any],
        *,
        only_if: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Operation:
        put: dict[str, Any] = {"TableName": self.table, "Item": _key(key) | to_attributes(item)}
        if only_if is not None:
            put["ConditionExpression"] = only_if
        if values:
            put["ExpressionAttributeValues"] = to_attributes(values)
        return {"Put": put}

    def puts(self, keys: Iterable[Key], item: Mapping[str, Any]) -> list[Operation]:
        """Put the same item under several keys."""
        attributes = to_attributes(item)
        return [{"Put": {"TableName": self.table, "Item": _key(key) | attributes}} for key in keys]

    def update(self, key: Key, update: Update) -> Operation:
        """Build an Update, or a ConditionCheck if nothing changes, with aliases for names and values."""
        names, values = dict[str, str](), dict[str, Any]()

        def bound(template: str, attribute: str, content: Any) -> str:
            number = len(names) + len(values)
            if "#n" in template:
                names[f"#n{number}"] = attribute
            if ":v" in template:
                values[f":v{number}"] = value(content)
            return template.replace("#n", f"#n{number}").replace(":v", f":v{number}")

        clauses = {
            "ADD": [bound("#n :v", name, count) for name, count in update.add.items() if count],
            "SET": [
                *(bound("#n = :v", name, content) for name, content in update.put.items()),
                *(
                    bound("#n = ", name, None) + bound("if_not_exists(#n, :v)", source, content)
                    for name, source, content in update.shift
                ),
                *(_appended(bound, name, update.append[name]) for name in update.append),
            ],
            "REMOVE": [bound("#n", name, None) for name in update.remove],
        }
        conditions = [bound(f"({template})", name, content) for template, name, content in update.conditions]
        conditions += [f"({' OR '.join(bound(*clause) for clause in group)})" for group in update.any_of]
        operation: dict[str, Any] = {
            "TableName": self.table,
            "Key": _key(key),
            "ExpressionAttributeNames": names,
        }
        expression = " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items() if parts)
        if expression:
            operation["UpdateExpression"] = expression
        if values:
            operation["ExpressionAttributeValues"] = values
        if conditions:
            operation["ConditionExpression"] = " AND ".join(conditions)
        return {"Update" if expression else "ConditionCheck": operation}


def _appended(bound: Callable[[str, str, Any], str], name: str, elements: list[Any]) -> str:
    begun = bound("if_not_exists(#n, :v)", name, [])
    return f"{bound('#n = ', name, None)}list_append({begun}, {bound(':v', name, elements)})"


def _line(change: Change, *, at: datetime) -> HistoryLine:
    before, after = change.before, change.after
    reason = change.ended.reason if change.ended else change.note or after.reason or after.waiting
    return HistoryLine(
        at=at, attempt=before.attempt, from_state=before.state, to_state=after.state, reason=reason
    )


def job_item(job: Job, *, at: datetime) -> dict[str, Any]:
    """Encode the job, with the index's attributes at the top and the time of the write."""
    return {**encode(job), "team": job.spec.team, layout.CHANGED_AT: iso(at)}


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
