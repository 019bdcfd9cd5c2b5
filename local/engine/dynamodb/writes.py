"""Writes of one item, alone or as a part of a transaction: first checked, then decided, then applied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType, Item

from local.engine.dynamodb.expressions import Condition, Params, Update, check_placeholders
from local.engine.dynamodb.order import Key
from local.engine.dynamodb.tables import Table, Tables
from local.engine.dynamodb.values import Wire, checked, invalid, item_bytes, item_to_wire, make_item
from local.wire import AwsError

MAX_BATCH = 25
"""Requests of a BatchWriteItem. Source: API reference."""


class ConditionFailedError(AwsError):
    """The condition does not hold; the item is what was found, when the caller asked to see it."""

    def __init__(self, found: Wire | None) -> None:
        members = {"Item": found} if found else {}
        super().__init__("ConditionalCheckFailedException", "The conditional request failed", members=members)
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The decided effect of a write; nothing has happened yet."""

    table: Table
    key: Key
    old: Item | None
    new: Item | None

    def apply(self) -> None:
        self.table.replace(self.key, self.old, self.new)


class Write:
    """A write whose form is right: the table is there, the key fits, the expressions parse."""

    def __init__(self, tables: Tables, region: str, kind: str, params: Params) -> None:
        """Check a Put, Update, Delete or ConditionCheck. Raises AwsError for a wrong request."""
        self.kind = kind
        self.table = tables.find(region, params["TableName"])
        check_placeholders(params)
        self._params = _with_checked_values(params)
        self._attributes = {name: checked(value) for name, value in params.get("Item", {}).items()}
        is_put = kind == "Put"
        self.key = self.table.key_in_item(self._attributes) if is_put else self.table.key(params["Key"])
        self._condition = Condition(self._params, "ConditionExpression")
        self.update = Update(self._params)

    @property
    def size_bytes(self) -> int:
        return item_bytes(self._attributes or self._params["Key"])

    def decide(self) -> Change:
        """Decide what the write does to the current item. Raises AwsError if the item does not allow it."""
        old = self.table.get(self.key)
        if not self._condition.holds(old):
            wants_old = self._params.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            raise ConditionFailedError(item_to_wire(old) if wants_old and old is not None else None)
        return Change(table=self.table, key=self.key, old=old, new=self._new(old))

    def _new(self, old: Item | None) -> Item | None:
        match self.kind:
            case "Put":
                too_large = "Item size has exceeded the maximum allowed size"
                return self.table.make(self._attributes, too_large=too_large)
            case "Update":
                item = self._bare_item() if old is None else _copied(old)
                self.update.apply(item, self.table.moto)
                return self.table.updated(item)
            case "Delete":
                return None
            case _:  # ConditionCheck
                return old

    def _bare_item(self) -> Item:
        key = self._params["Key"]
        parts = [DynamoType(key[name]) for name in self.table.key_names]
        return make_item(parts[0], parts[1] if len(parts) > 1 else None, key)


def _copied(item: Item) -> Item:
    return make_item(item.hash_key, item.range_key, item_to_wire(item))


def put_item(tables: Tables, region: str, params: Params) -> Wire:
    return _write(Write(tables, region, "Put", params), params)


def update_item(tables: Tables, region: str, params: Params) -> Wire:
    return _write(Write(tables, region, "Update", params), params)


def delete_item(tables: Tables, region: str, params: Params) -> Wire:
    return _write(Write(tables, region, "Delete", params), params)


def batch_write_item(tables: Tables, region: str, params: Params) -> Wire:
    """Write all or, if the request is wrong, none; nothing is ever left unprocessed here."""
    writes = [
        _batched(tables, region, name, request)
        for name, requests in params["RequestItems"].items()
        for request in requests
    ]
    if not 1 <= len(writes) <= MAX_BATCH:
        raise invalid(f"Too many items requested for the BatchWriteItem call: 1 to {MAX_BATCH}")
    if len({(write.table.name, write.key) for write in writes}) != len(writes):
        raise invalid("Provided list of item keys contains duplicates")
    for change in [write.decide() for write in writes]:
        change.apply()
    return {"UnprocessedItems": {}}


def _batched(tables: Tables, region: str, name: str, request: Mapping[str, Any]) -> Write:
    if "PutRequest" in request:
        item = request["PutRequest"]["Item"]
        return Write(tables, region, "Put", {"TableName": name, "Item": item})
    return Write(tables, region, "Delete", {"TableName": name, "Key": request["DeleteRequest"]["Key"]})


def _write(write: Write, params: Params) -> Wire:
    wanted = params.get("ReturnValues", "NONE")
    if wanted not in ({"NONE", "ALL_OLD"} if write.kind != "Update" else _UPDATE_RETURNS):
        raise invalid("Return values set to invalid value")
    change = write.decide()
    change.apply()
    returned = _returned(change, wanted, write.update.attributes())
    return {"Attributes": returned} if returned else {}


_UPDATE_RETURNS = frozenset({"NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"})


def _returned(change: Change, wanted: str, written: frozenset[str]) -> Wire:
    """Return the wanted attributes; ``UPDATED_*`` gives whole top-level ones (DynamoDB: nested parts)."""
    item = change.old if wanted.endswith("_OLD") else change.new
    if wanted == "NONE" or item is None:
        return {}
    attributes = item_to_wire(item)
    if wanted.startswith("ALL_"):
        return attributes
    return {name: value for name, value in attributes.items() if name in written}


def _with_checked_values(params: Params) -> Params:
    values = params.get("ExpressionAttributeValues")
    if not values:
        return params
    return {
        **params,
        "ExpressionAttributeValues": {name: checked(value) for name, value in values.items()},
    }
