"""JobStore over DynamoDB: each call is one conditional transaction."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import encode, value
from trainmaster.adapters.dynamodb.transactions import Transactions, unavailable
from trainmaster.adapters.dynamodb.writes import Retention, Writes, with_new_versions
from trainmaster.jobs import Capacity, Job
from trainmaster.ports import Change, Guard
from trainmaster.scheduling.snapshot import AccountLimit, Hold, WarmPool


class DynamoJobStore:
    def __init__(self, client: Any, *, table: str, retention_days: int) -> None:
        self._client = client
        self._table = table
        self._writes = Writes(table=table, retention=Retention(days=retention_days))
        self._transactions = Transactions(client)

    def submit(self, job: Job, body: bytes) -> None:
        packed = gzip.compress(body, mtime=0)
        self._transactions.write(self._writes.of_submission(job, packed))

    def commit(
        self, changes: Sequence[Change], *, at: datetime, guard: Guard | None = None
    ) -> tuple[Job, ...]:
        versioned = with_new_versions(changes)
        self._transactions.write(self._writes.of(versioned, at=at, guard=guard))
        return tuple(change.after for change in versioned)

    def limit_hold(self, pool: str, hold: Hold, until: datetime) -> None:
        limited = value(encode(replace(hold, until=until)))
        self._change_hold(pool, hold, "SET #hold = :new", {":new": limited})

    def drop_hold(self, pool: str, hold: Hold) -> None:
        self._change_hold(pool, hold, "REMOVE #hold", {})

    def change_warm(self, pool: str, before: WarmPool | None, after: WarmPool | None) -> None:
        self._transactions.write(self._writes.of_warm(pool, before, after))

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """The last one to be told counts: two passes that learn at once learn the same."""
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
                Key={"pk": {"S": key[0]}, "sk": {"S": key[1]}},
                UpdateExpression="REMOVE #it" if content is None else "SET #it = :new",
                ExpressionAttributeNames={"#it": attribute},
                **noted,
            )
        except ClientError as error:
            raise unavailable(error) from error

    def _change_hold(self, pool: str, hold: Hold, expression: str, values: dict[str, Any]) -> None:
        """Only the very hold that was seen; another pass may have been faster."""
        pk, sk = layout.counters_key(pool)
        try:
            self._client.update_item(
                TableName=self._table,
                Key={"pk": {"S": pk}, "sk": {"S": sk}},
                UpdateExpression=expression,
                ConditionExpression="#hold = :old",
                ExpressionAttributeNames={"#hold": layout.hold_of(hold.preemptor)},
                ExpressionAttributeValues={":old": value(encode(hold)), **values},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise unavailable(error) from error
