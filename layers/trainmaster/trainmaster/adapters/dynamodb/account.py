"""What is true of the whole account and of no pool: one row, never in a transaction."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.calls import Rows, key_attributes
from trainmaster.adapters.dynamodb.codec import iso, value
from trainmaster.core.pace import Pace

_LOOKED_UPTO = "looked_upto"


class DynamoAccount:
    """PaceStore and Rotation."""

    def __init__(self, client: Any, *, table: str) -> None:
        self._rows = Rows(client, table=table)

    def pace(self, operation: str) -> Pace:
        row = self._rows.get(layout.ACCOUNT_KEY) or {}
        stored = row.get(_pace_of(operation))
        return Pace() if stored is None else _decoded(stored)

    def change_pace(self, operation: str, before: Pace, after: Pace) -> bool:
        values = {":new": value(_encoded(after))}
        condition = "attribute_not_exists(#it)"
        if before != Pace():
            condition, values[":old"] = "#it = :old", value(_encoded(before))
        return self._set(_pace_of(operation), values, condition)

    def looked_upto(self) -> str | None:
        row = self._rows.get(layout.ACCOUNT_KEY) or {}
        name: str | None = row.get(_LOOKED_UPTO)
        return name

    def note_looked(self, name: str) -> None:
        self._set(_LOOKED_UPTO, {":new": value(name)}, None)

    def _set(self, attribute: str, values: dict[str, Any], condition: str | None) -> bool:
        """False: the condition did not hold."""
        only_if = {} if condition is None else {"ConditionExpression": condition}
        return self._rows.change(
            "update_item",
            Key=key_attributes(layout.ACCOUNT_KEY),
            UpdateExpression="SET #it = :new",
            ExpressionAttributeNames={"#it": attribute},
            ExpressionAttributeValues=values,
            **only_if,
        )


def _pace_of(operation: str) -> str:
    return f"pace#{operation}"


def _encoded(pace: Pace) -> dict[str, Any]:
    instants = {"not_before": pace.not_before, "throttled_at": pace.throttled_at}
    stored = {name: iso(at) for name, at in instants.items() if at is not None}
    return {"gap_ms": pace.gap // timedelta(milliseconds=1), **stored}


def _decoded(stored: Mapping[str, Any]) -> Pace:
    instants = {
        name: datetime.fromisoformat(stored[name]) if name in stored else None
        for name in ("not_before", "throttled_at")
    }
    return Pace(gap=timedelta(milliseconds=stored["gap_ms"]), **instants)
