"""Call the table: rows, partitions page by page, batches of jobs, transactions, and what is refused."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import from_attributes, to_attributes
from trainmaster.core.errors import LostRaceError, UnavailableError, WriteRefusedError

CONFLICT_TRIES = 8
"""Tries of a transaction that conflicts: AWS cancels one of two writers and leaves the retry to us."""
CONFLICT_PAUSE_SECONDS = 0.05
LOST_TRIES = 2
"""Tries of a call without an answer, each after botocore's own; after the last it is unknown what was
written."""
MAX_ITEMS = 100
"""Operations of one transaction. Source: DynamoDB limits, TransactWriteItems."""

_JITTER = secrets.SystemRandom()
_CANCELLED = "TransactionCanceledException"
_CONDITION = "ConditionalCheckFailed"
_INVALID = frozenset({"ValidationError", "ValidationException"})
"""Codes of an invalid write: the reason in a cancelled transaction, and the code of a single call."""
_CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})


class ConditionsFailedError(LostRaceError):
    """Some rows did not meet the conditions of the write."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__("a row changed after it was read")
        self.positions = positions
        """Positions, in the transaction, of the operations whose conditions failed."""


class Transactions:
    """Writes all or nothing. ``pause`` waits between tries; tests pass one that does not."""

    def __init__(self, client: Any, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._pause = pause

    def write(self, operations: Sequence[dict[str, Any]]) -> None:
        """Write, or raise LostRaceError if a condition failed, UnavailableError if DynamoDB took nothing.

        WriteRefusedError is raised if it can never be accepted as it is.

        Every try has the same ClientRequestToken, botocore's and ours: a write whose answer was lost is not
        applied twice and does not lose against itself, but is recognised.
        """
        assert len(operations) <= MAX_ITEMS, f"{len(operations)} items in one transaction"
        token, lost = str(uuid4()), 0
        for number in range(CONFLICT_TRIES):
            if number:
                self._pause(_JITTER.uniform(0, CONFLICT_PAUSE_SECONDS * 2 ** (number - 1)))
            try:
                self._client.transact_write_items(TransactItems=list(operations), ClientRequestToken=token)
            except ClientError as error:
                if not _is_conflict(error):
                    raise _translated(error, operations) from error
            except BotoCoreError as error:  # no answer: it may be written, and the token makes a repeat safe
                lost += 1
                if lost == LOST_TRIES:
                    raise UnavailableError("the table did not answer") from error
            else:
                return
        raise LostRaceError("other writers kept the same rows busy")


def _is_conflict(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    return code in _CONFLICTS or (
        code == _CANCELLED
        and "TransactionConflict" in _reasons(error)
        and _reasons(error).isdisjoint({_CONDITION, *_INVALID})
    )


def _translated(error: ClientError, operations: Sequence[Mapping[str, Any]]) -> Exception:
    code = error.response["Error"]["Code"]
    if code == _CANCELLED and _CONDITION in _reasons(error):
        return ConditionsFailedError(_failed(error))
    if code == _CANCELLED and not _reasons(error).isdisjoint(_INVALID):
        return _refused_rows(error, operations)
    return refused(error)


def refused(error: ClientError) -> UnavailableError | WriteRefusedError:
    """Translate a throttle, an outage or a disabled key: nothing was written, and the caller may retry.

    A call that is itself invalid is our mistake, or a row at its size limit, and a retry does not help.
    """
    code = error.response["Error"]["Code"]
    if code in _INVALID:
        return WriteRefusedError(f"the table takes no such call: {error.response['Error'].get('Message')}")
    return UnavailableError(f"the table refused: {code}")


def _refused_rows(error: ClientError, operations: Sequence[Mapping[str, Any]]) -> WriteRefusedError:
    """Name the rows that cannot be written, and why."""
    cancelled = zip(operations, error.response.get("CancellationReasons", []), strict=False)
    rows = [
        f"{_row_of(operation)}: {reason.get('Message', 'not valid')}"
        for operation, reason in cancelled
        if reason.get("Code") in _INVALID
    ]
    return WriteRefusedError(f"the table will not take the write as it is ({'; '.join(rows)})")


def _row_of(operation: Mapping[str, Any]) -> str:
    """Return ``partition/sort key`` of an element of TransactItems."""
    (content,) = operation.values()
    key = content.get("Key") or content["Item"]
    return f"{key['pk']['S']}/{key['sk']['S']}"


def _failed(error: ClientError) -> frozenset[int]:
    cancelled = error.response.get("CancellationReasons", [])
    return frozenset(
        position for position, reason in enumerate(cancelled) if reason.get("Code") == _CONDITION
    )


def _reasons(error: ClientError) -> set[str]:
    cancelled = error.response.get("CancellationReasons", [])
    return {reason.get("Code", "None") for reason in cancelled}


PAGE = 250
"""Rows of one call where the caller does not set fewer."""


@dataclass(frozen=True, slots=True)
class SortKeys:
    """Selects the sort keys of a partition for which ``clause`` holds with ``bound`` as ``:sk``."""

    clause: str
    bound: str
    last: str | None = None
    """The second bound, ``:last``, of a clause that has two."""

    @classmethod
    def beginning(cls, prefix: str) -> Self:
        return cls("begins_with(sk, :sk)", prefix)

    @classmethod
    def behind(cls, key: str) -> Self:
        return cls("sk > :sk", key)

    @classmethod
    def up_to(cls, key: str) -> Self:
        return cls("sk <= :sk", key)

    @classmethod
    def between(cls, first: str, last: str) -> Self:
        """Select the sort keys between both bounds, the bounds included."""
        return cls("sk BETWEEN :sk AND :last", first, last)

    @classmethod
    def before(cls, key: str) -> Self:
        return cls("sk < :sk", key)


class Rows:
    """Every call may raise UnavailableError, and WriteRefusedError if a retry cannot help."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, key: layout.Key) -> dict[str, Any] | None:
        answer = self._call("get_item", Key=key_attributes(key), ConsistentRead=True)
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def query(
        self,
        partition: str,
        keys: SortKeys | None = None,
        *,
        backwards: bool = False,
        page: int = PAGE,
    ) -> Iterator[dict[str, Any]]:
        return self.pages(**_within(partition, keys), ScanIndexForward=not backwards, Limit=page)

    def first(
        self, partition: str, keys: SortKeys | None = None, *, most: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Read at most ``most`` rows in one call, and tell whether there may be more behind them."""
        answer = self._call("query", **_within(partition, keys), Limit=most)
        return [from_attributes(raw) for raw in answer["Items"]], "LastEvaluatedKey" in answer

    def count(self, partition: str, keys: SortKeys, *, most: int) -> int:
        """Count the rows, but no further than ``most``; no row is sent over the wire."""
        counted, query = 0, _within(partition, keys) | {"Select": "COUNT"}
        while counted < most:
            answer = self._call("query", **query, Limit=most - counted)
            counted += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                break
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return counted

    def pages(self, *, first: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages, reading on as the caller takes them.

        Args:
            first: Items of the first page at most, before a filter; each page may have twice as many as the
                one before. None reads pages of 1 MB.
            query: The parameters of ``Query``.
        """
        limit = first
        while True:
            bound: dict[str, Any] = {} if limit is None else {"Limit": limit}
            answer = self._call("query", **query, **bound)
            yield from (from_attributes(raw) for raw in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            limit = None if limit is None else 2 * limit

    def scan(
        self, *, behind: tuple[str, str] | None, most: int, wanted: Callable[[str, str], bool]
    ) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
        """Read one page of the whole table; return rows and the last key, which is None after the last page.

        Only rows whose keys are wanted are decoded.
        """
        page: dict[str, Any] = {"ConsistentRead": True, "Limit": most}
        if behind is not None:
            page["ExclusiveStartKey"] = key_attributes(behind)
        answer = self._call("scan", **page)
        last = answer.get("LastEvaluatedKey")
        kept = (raw for raw in answer["Items"] if wanted(raw["pk"]["S"], raw["sk"]["S"]))
        rows = [from_attributes(raw) for raw in kept]
        return rows, None if last is None else (last["pk"]["S"], last["sk"]["S"])

    def jobs(self, names: list[str]) -> Iterator[dict[str, Any]]:
        return self.several(layout.job_key(name) for name in names)

    def several(self, wanted: Iterable[layout.Key]) -> Iterator[dict[str, Any]]:
        """Read those of at most 100 rows that exist."""
        keys = [key_attributes(key) for key in wanted]
        while keys:
            request = {self._table: {"Keys": keys, "ConsistentRead": True}}
            answer = self._call("batch_get_item", table=False, RequestItems=request)
            yield from (from_attributes(raw) for raw in answer["Responses"].get(self._table, []))
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])

    def change(self, operation: str, **arguments: Any) -> bool:
        """Write one row; False where its condition did not hold."""
        try:
            self._call(operation, **arguments)
        except ConditionsFailedError:
            return False
        return True

    def changed(self, **update: Any) -> dict[str, Any]:
        """Write one row, and return all of it as it is now."""
        return from_attributes(self._call("update_item", ReturnValues="ALL_NEW", **update)["Attributes"])

    def _call(self, operation: str, *, table: bool = True, **arguments: Any) -> dict[str, Any]:
        if table:
            arguments["TableName"] = self._table
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise ConditionsFailedError(frozenset({0})) from error
            raise refused(error) from error
        except BotoCoreError as error:
            raise UnavailableError("the table did not answer") from error
        return answer


def _within(partition: str, keys: SortKeys | None) -> dict[str, Any]:
    """Build the condition of a Query: some sort keys of a partition, or all, strongly consistent."""
    condition, values = "pk = :pk", {":pk": partition}
    if keys is not None:
        condition, values = f"{condition} AND {keys.clause}", values | {":sk": keys.bound}
        values |= {} if keys.last is None else {":last": keys.last}
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": to_attributes(values),
        "ConsistentRead": True,
    }


def key_attributes(key: layout.Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
