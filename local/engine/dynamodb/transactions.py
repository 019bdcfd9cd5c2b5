"""TransactWriteItems: all or nothing, on the touched items alone.

moto copies every touched table whole and puts the copy back when a condition fails, which loses what others
wrote meanwhile and costs more the larger the table is. Here every item is decided first and written after.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from local.engine.dynamodb.expressions import Params
from local.engine.dynamodb.tables import Tables
from local.engine.dynamodb.values import Wire, invalid
from local.engine.dynamodb.writes import Change, ConditionFailedError, Write
from local.wire import AwsError

MAX_ITEMS = 100
MAX_BYTES = 4 * 1024 * 1024
TOKEN_LIFE = timedelta(minutes=10)
"""Source of all three: API reference, TransactWriteItems."""

_KINDS = frozenset({"Put", "Update", "Delete", "ConditionCheck"})
_NO_REASON: Wire = {"Code": "None"}
_CONFLICT = "TransactionConflict"
REASON_CODES: Mapping[str, str] = {
    _CONFLICT: "Transaction is ongoing for the item",
    "ConditionalCheckFailed": "The conditional request failed",
    "ItemCollectionSizeLimitExceeded": "Collection size exceeded.",
    "ProvisionedThroughputExceeded": "The level of configured provisioned throughput was exceeded.",
    "ThrottlingError": "Throughput exceeds the current capacity of your table or index.",
    "ValidationError": "One or more parameter values were invalid",
}
"""Reasons that can cancel a transaction; also used as error codes of faults on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """A transaction that went through under a token."""

    request: str
    at: datetime


class Transactions:
    def __init__(self, tables: Tables, now: Callable[[], datetime]) -> None:
        self._tables = tables
        self._now = now
        self._done: dict[str, _Done] = {}

    def write(self, region: str, params: Params) -> Wire:
        """Raises AwsError; then nothing was written."""
        token = params.get("ClientRequestToken")
        if token is not None and self._is_repeated(token, params):
            return {}
        writes = self._parse(region, params["TransactItems"])
        changes, reasons = _decide(writes)
        if any(reason is not _NO_REASON for reason in reasons):
            raise cancelled(reasons)
        for change in changes:
            change.apply()
        if token is not None:
            self._done[token] = _Done(request=_canonical(params), at=self._now())
        return {}

    def _is_repeated(self, token: str, params: Params) -> bool:
        now = self._now()
        self._done = {
            known_token: done for known_token, done in self._done.items() if now - done.at < TOKEN_LIFE
        }
        done = self._done.get(token)
        if done is not None and done.request != _canonical(params):
            raise AwsError(
                "IdempotentParameterMismatchException",
                "The request uses the same client token as a previous, but non-identical request.",
            )
        return done is not None

    def _parse(self, region: str, items: Sequence[Mapping[str, Any]]) -> list[Write]:
        if not 1 <= len(items) <= MAX_ITEMS:
            raise invalid(
                "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "
                f"Member must have length less than or equal to {MAX_ITEMS} and greater than or equal to 1"
            )
        writes = [self._parse_one(region, action) for action in items]
        if len({(write.table.name, write.key) for write in writes}) != len(writes):
            raise invalid("Transaction request cannot include multiple operations on one item")
        if sum(write.size_bytes for write in writes) > MAX_BYTES:
            raise invalid("Aggregate size of all items in the transaction must not exceed 4 MB")
        return writes

    def _parse_one(self, region: str, item: Mapping[str, Any]) -> Write:
        if len(item) != 1 or not _KINDS.issuperset(item):
            raise invalid("TransactItems can only contain one of Check, Put, Update or Delete")
        ((kind, params),) = item.items()
        return Write(self._tables, region, kind, params)


def cancelled(reasons: Sequence[Wire]) -> AwsError:
    codes = ", ".join(reason["Code"] for reason in reasons)
    return AwsError(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        members={"CancellationReasons": list(reasons)},
    )


def cancelled_on_demand(code: str, params: Params) -> AwsError:
    """Make a cancellation by the first item, for ``REASON_CODES``."""
    others = len(params.get("TransactItems", ())) - 1
    return cancelled([{"Code": code, "Message": REASON_CODES[code]}, *[_NO_REASON] * others])


def _decide(writes: Sequence[Write]) -> tuple[list[Change], list[Wire]]:
    changes: list[Change] = []
    reasons: list[Wire] = []
    for write in writes:
        try:
            changes.append(write.decide())
            reasons.append(_NO_REASON)
        except ConditionFailedError as error:
            old_item = {"Item": error.found} if error.found else {}
            reasons.append({"Code": "ConditionalCheckFailed", "Message": error.message, **old_item})
        except AwsError as error:
            reasons.append({"Code": "ValidationError", "Message": error.message})
    return changes, reasons


def _canonical(params: Params) -> str:
    """Write a request in one form: binary values are text over the wire, bytes within this process."""
    return json.dumps(params["TransactItems"], sort_keys=True, default=bytes.hex)
