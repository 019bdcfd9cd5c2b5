"""The calls that read the table: single rows, partitions page by page, jobs in batches."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import from_attributes, to_attributes
from trainmaster.adapters.dynamodb.transactions import unavailable
from trainmaster.core.errors import UnavailableError

PAGE = 250
"""Rows of one call where nobody needs fewer."""


class Rows:
    """Every call may raise UnavailableError."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, key: layout.Key) -> dict[str, Any] | None:
        answer = self._call("get_item", Key=_key(key), ConsistentRead=True)
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def query(
        self,
        partition: str,
        *,
        prefix: str | None = None,
        behind: str | None = None,
        upto: str | None = None,
        backwards: bool = False,
        page: int = PAGE,
    ) -> Iterator[dict[str, Any]]:
        condition, values = "pk = :pk", {":pk": partition}
        for clause, bound in (
            (" AND begins_with(sk, :sk)", prefix),
            (" AND sk > :sk", behind),
            (" AND sk <= :sk", upto),
        ):
            if bound is not None:
                condition, values = condition + clause, values | {":sk": bound}
        return self.pages(
            KeyConditionExpression=condition,
            ExpressionAttributeValues=to_attributes(values),
            ConsistentRead=True,
            ScanIndexForward=not backwards,
            Limit=page,
        )

    def pages(self, **query: Any) -> Iterator[dict[str, Any]]:
        while True:
            answer = self._call("query", **query)
            yield from (from_attributes(item) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def jobs(self, names: list[str]) -> Iterator[dict[str, Any]]:
        keys = [_key(layout.job_key(name)) for name in names]
        while keys:
            request = {self._table: {"Keys": keys, "ConsistentRead": True}}
            answer = self._call("batch_get_item", table=False, RequestItems=request)
            yield from (from_attributes(item) for item in answer["Responses"].get(self._table, []))
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])

    def _call(self, operation: str, *, table: bool = True, **arguments: Any) -> dict[str, Any]:
        if table:
            arguments["TableName"] = self._table
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**arguments)
        except ClientError as error:
            raise unavailable(error) from error
        except BotoCoreError as error:
            raise UnavailableError("the table did not answer") from error
        return answer


def _key(key: layout.Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
