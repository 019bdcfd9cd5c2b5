"""JobStore over DynamoDB: each call is one conditional transaction."""

import gzip
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from trainmaster.adapters.dynamodb import layout, submissions
from trainmaster.adapters.dynamodb.calls import ConditionsFailedError, Transactions, unavailable
from trainmaster.adapters.dynamodb.codec import decode, encode, from_attributes, iso, value
from trainmaster.adapters.dynamodb.counting import Update
from trainmaster.adapters.dynamodb.stored_names import stored_name
from trainmaster.adapters.dynamodb.writes import Operation, Retention, Writes, with_new_versions
from trainmaster.core.errors import TeamLimit, TeamLimitError
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.metrics import Sample, samples, samples_of_record
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.snapshot import AccountLimit, PreemptionReservation, WarmPool
from trainmaster.core.records import Admission, Adoption, WriteCondition
from trainmaster.core.rules.violation import ViolationRecord


def _unmeasured(_: Iterable[Sample]) -> None:
    """For who does not measure."""


class DynamoJobStore:
    """``measure`` takes what a write counts as, once it is done: one that lost a race is not counted."""

    def __init__(
        self,
        client: Any,
        *,
        table: str,
        retention_days: int,
        measure: Callable[[Iterable[Sample]], None] = _unmeasured,
    ) -> None:
        self._client = client
        self._measure = measure
        self._table = table
        self._writes = Writes(table=table, retention=Retention(days=retention_days))
        self._transactions = Transactions(client)

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        packed = gzip.compress(body, mtime=0)
        operations = submissions.of_submission(job, packed, self._writes, admission=admission)
        try:
            self._transactions.write(operations)
        except ConditionsFailedError as error:
            limit = self._limit_reached(job, error.positions, admission)
            if limit is None:
                raise
            raise TeamLimitError(limit) from error

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
            self._put_new(self._writes.message(pool, message, only_if="attribute_not_exists(pk)"))

    def leave_once(self, pool: str, message: OutboxMessage, *, subject: str) -> bool:
        told = Update(put={layout.told(subject): iso(message.at)})
        told.conditions.append(("attribute_not_exists(#n)", layout.told(subject), None))
        note = self._writes.update(layout.counters_key(pool), told)
        try:
            self._transactions.write([self._writes.message(pool, message), note])
        except ConditionsFailedError:
            return False
        return True

    def messages(self, pool: str, *, limit: int) -> tuple[OutboxMessage, ...]:
        try:
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": layout.message_key(pool, "")[0]}},
                ConsistentRead=True,
                Limit=limit,
            )
        except ClientError as error:
            raise unavailable(error) from error
        rows = (from_attributes(item) for item in answer["Items"])
        return tuple(
            decode(OutboxMessage, row) for row in rows if row.get("schema", 1) <= layout.MESSAGE_SCHEMA
        )

    def take(self, pool: str, message: OutboxMessage, *, until: datetime, now: datetime) -> bool:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(layout.message_key(pool, message.id)),
                UpdateExpression="SET #lease = :until",
                ConditionExpression="attribute_exists(pk) AND"
                " (attribute_not_exists(#lease) OR #lease <= :now)",
                ExpressionAttributeNames={"#lease": stored_name(OutboxMessage, "lease_until")},
                ExpressionAttributeValues={":until": value(iso(until)), ":now": value(iso(now))},
            )
        except ClientError as error:
            return _lost(error)
        return True

    def done(self, pool: str, message: OutboxMessage) -> None:
        try:
            self._client.delete_item(TableName=self._table, Key=_key(layout.message_key(pool, message.id)))
        except ClientError as error:
            raise unavailable(error) from error

    def _put_new(self, operation: Operation) -> bool:
        """False: there is one under this key."""
        try:
            self._client.put_item(**operation["Put"])
        except ClientError as error:
            return _lost(error)
        return True

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        versioned = with_new_versions(changes)
        self._transactions.write(self._writes.of(versioned, at=at, condition=condition))
        for change in versioned:
            self._measure(samples(change))
        return tuple(change.after for change in versioned)

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

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """The last one to report counts: two passes that learn at once learn the same."""
        learned = None if limit is None else encode(limit)
        self._note(layout.counters_key(pool), layout.account_limit(capacity), learned)

    def ranked(self, pool: str, order_key: str) -> None:
        self._note(layout.counters_key(pool), layout.ORDER_KEY, order_key)

    def warned(self, team: str, month: str) -> None:
        self._note(layout.month_key(team, month), layout.WARNED, True)

    def _note(self, key: layout.Key, attribute: str, content: object) -> None:
        """Set one attribute; None takes it away."""
        noted = {} if content is None else {"ExpressionAttributeValues": {":new": value(content)}}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="REMOVE #it" if content is None else "SET #it = :new",
                ExpressionAttributeNames={"#it": attribute},
                **noted,
            )
        except ClientError as error:
            raise unavailable(error) from error

    def _limit_reached(
        self, job: Job, positions: frozenset[int], admission: Admission | None
    ) -> TeamLimit | None:
        """None: the name is in use, or the policy is being changed."""
        if admission is None or submissions.name_was_taken(positions):
            return None
        if submissions.team_refused(positions) and self._waiting(job) >= admission.limits.max_waiting:
            return TeamLimit.MAX_WAITING
        return TeamLimit.MAX_SUBMISSIONS_PER_MINUTE if submissions.minute_was_full(positions) else None

    def _waiting(self, job: Job) -> int:
        key = _key(layout.team_key(job.spec.pool, job.spec.team))
        try:
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        except ClientError as error:
            raise unavailable(error) from error
        return int(from_attributes(answer.get("Item", {})).get(layout.WAITING, 0))

    def _change_hold(
        self, pool: str, hold: PreemptionReservation, expression: str, values: dict[str, Any]
    ) -> None:
        """Only the very hold that was seen; another pass may have been faster."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(layout.counters_key(pool)),
                UpdateExpression=expression,
                ConditionExpression="#hold = :old",
                ExpressionAttributeNames={"#hold": layout.hold_of(hold.preemptor)},
                ExpressionAttributeValues={":old": value(encode(hold)), **values},
            )
        except ClientError as error:
            _lost(error)


def _lost(error: ClientError) -> bool:
    """False where a condition did not hold. Raises UnavailableError for everything else."""
    if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
        raise unavailable(error) from error
    return False


def _key(key: layout.Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
