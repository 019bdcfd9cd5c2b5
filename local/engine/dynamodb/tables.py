"""moto's tables with their keys kept in order: the one place that reads and replaces items."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table as MotoTable

from local.engine.dynamodb.order import NOTHING, Key, TableOrder, sortable
from local.engine.dynamodb.values import (
    MAX_ITEM_BYTES,
    Wire,
    checked,
    invalid,
    item_bytes,
    item_to_wire,
    make_item,
)
from local.wire import AwsError


class Table:
    """A table for the length of one request."""

    def __init__(self, moto: MotoTable, order: TableOrder) -> None:
        self.moto = moto
        self.order = order

    @property
    def name(self) -> str:
        return str(self.moto.name)

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(self.moto.table_key_attrs)

    @property
    def types(self) -> Mapping[str, str]:
        """Map attributes of the table's and the indexes' keys to S, N or B."""
        return {attribute["AttributeName"]: attribute["AttributeType"] for attribute in self.moto.attr}

    def key(self, attributes: Mapping[str, Any]) -> Key:
        """Read the key in a request's ``Key``, which must hold the key's attributes and nothing else."""
        if set(attributes) != set(self.key_names):
            raise invalid("The provided key element does not match the schema")
        return self._key_in(attributes, "The provided key element does not match the schema")

    def key_in_item(self, attributes: Mapping[str, Any]) -> Key:
        for name in self.key_names:
            if name not in attributes:
                raise invalid(
                    f"One or more parameter values were invalid: Missing the key {name} in the item"
                )
        return self._key_in(attributes, "One or more parameter values were invalid: Type mismatch for key")

    def get(self, key: Key) -> Item | None:
        return self.order.items.get(key)

    def make(self, attributes: Mapping[str, Any], *, too_large: str) -> Item:
        """Make a new item of this table, checked against its keys, its indexes and the limit on size."""
        self._check_indexes(attributes)
        if item_bytes(attributes) > MAX_ITEM_BYTES:
            raise invalid(too_large)
        parts = [DynamoType(attributes[name]) for name in self.key_names]
        return make_item(parts[0], parts[1] if len(parts) > 1 else None, attributes)

    def updated(self, item: Item) -> Item:
        """Return the item as an update left it, checked again."""
        attributes = {name: checked(value) for name, value in item_to_wire(item).items()}
        return self.make(attributes, too_large="Item size to update has exceeded the maximum allowed size")

    def replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        """Change an item, which happens only here. ``old`` is the item that ``get`` returned."""
        at = new if new is not None else old
        if at is None:
            return
        if new is None:
            self._delete(at)
        elif at.range_key is None:
            self.moto.items[at.hash_key] = new
        else:
            self.moto.items[at.hash_key][at.range_key] = new
        self.order.touch(key, new)
        if self.moto.stream_shard is not None:
            self.moto.stream_shard.add(old, new)

    def _delete(self, item: Item) -> None:
        partition = self.moto.items[item.hash_key]
        if item.range_key is not None:
            del partition[item.range_key]
        if item.range_key is None or not partition:
            del self.moto.items[item.hash_key]

    def _key_in(self, attributes: Mapping[str, Any], mismatch: str) -> Key:
        types, parts = self.types, []
        for name in self.key_names:
            ((kind, content),) = attributes[name].items()
            if kind != types[name]:
                raise invalid(mismatch)
            if content in ("", b""):
                raise invalid(
                    "One or more parameter values are not valid. The AttributeValue for a key attribute "
                    f"cannot contain an empty string value. Key: {name}"
                )
            parts.append(sortable(DynamoType(attributes[name])))
        return parts[0], parts[1] if len(parts) > 1 else NOTHING

    def _check_indexes(self, attributes: Mapping[str, Any]) -> None:
        types = self.types
        for index in self.moto.all_indexes():
            for part in index.schema:
                name = part["AttributeName"]
                if name in attributes:
                    _check_index_key(index.name, name, attributes[name], types[name])


class Tables:
    """The tables of the twin, by region and name; their orders live as long as moto's tables do."""

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        self._orders: WeakKeyDictionary[MotoTable, TableOrder] = WeakKeyDictionary()

    def find(self, region: str, name_or_arn: str) -> Table:
        name = name_or_arn.rpartition("/")[2]
        moto = dynamodb_backends[self._account_id][region].tables.get(name)
        if moto is None:
            raise AwsError("ResourceNotFoundException", "Requested resource not found")
        order = self._orders.get(moto)
        if order is None:
            order = self._orders[moto] = TableOrder(moto)
        return Table(moto, order)

    def forget_orders(self) -> None:
        """Read the order again later: moto may have changed items or indexes itself."""
        self._orders.clear()


def key_attributes(item: Item, names: tuple[str, ...]) -> Wire:
    return {name: value for name, value in item_to_wire(item).items() if name in names}


def _check_index_key(index: str, name: str, value: Mapping[str, Any], wanted: str) -> None:
    ((kind, content),) = value.items()
    if kind != wanted:
        raise invalid(
            f"One or more parameter values were invalid: Type mismatch for Index Key {name} "
            f"Expected: {wanted} Actual: {kind} IndexName: {index}"
        )
    if content in ("", b""):
        raise invalid(
            "One or more parameter values are not valid. A value specified for a secondary index key is not "
            "supported. The AttributeValue for a key attribute cannot contain an empty string value. "
            f"IndexName: {index}, IndexKey: {name}"
        )
