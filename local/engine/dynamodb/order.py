"""Keeps the keys of a table and of its indexes in order, so that no read costs more in a larger table.

moto sorts all items of a table for each query: at 20,000 items that takes longer than a whole request may.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table

from local.engine.dynamodb.values import as_bytes

Sortable: TypeAlias = str | bytes | Decimal
Key: TypeAlias = tuple[Sortable, Sortable]
"""Partition and sort value of an item; the second is empty in a table without a sort key."""
Entry: TypeAlias = tuple[Sortable, Key]
"""The sort value in an index, then the item's own key: the order within a partition."""

NOTHING: Sortable = ""


def sortable(value: DynamoType) -> Sortable:
    if value.type == "N":
        return Decimal(value.value)
    if value.type == "B":
        return as_bytes(value.value)
    return str(value.value)


class IndexOrder:
    """Order of one index (or the table itself): partition value -> entries in order."""

    def __init__(self, schema: Iterable[Mapping[str, str]]) -> None:
        by_type = {part["KeyType"]: part["AttributeName"] for part in schema}
        self.hash_name = by_type["HASH"]
        self.range_name = by_type.get("RANGE")
        self._partitions: dict[Sortable, list[Entry]] = {}
        self._places: dict[Key, tuple[Sortable, Entry]] = {}

    def entries(self, hash_value: Sortable) -> list[Entry]:
        return self._partitions.get(hash_value, [])

    def partitions(self) -> list[Sortable]:
        """Return the partition values, in an order that does not change between two pages of a scan."""
        return sorted(self._partitions)

    def place(self, key: Key, item: Item | None) -> None:
        """Put the item where it belongs now; an item without the index's attributes is not in the index."""
        old, new = self._places.get(key), self._place_of(key, item)
        if old == new:
            return
        if old is not None:
            self._remove(key, *old)
        if new is not None:
            hash_value, entry = self._places[key] = new
            insort(self._partitions.setdefault(hash_value, []), entry)

    def _place_of(self, key: Key, item: Item | None) -> tuple[Sortable, Entry] | None:
        if item is None or self.hash_name not in item.attrs:
            return None
        if self.range_name is None:
            return sortable(item.attrs[self.hash_name]), (NOTHING, key)
        if self.range_name not in item.attrs:
            return None
        return sortable(item.attrs[self.hash_name]), (sortable(item.attrs[self.range_name]), key)

    def _remove(self, key: Key, hash_value: Sortable, entry: Entry) -> None:
        del self._places[key]
        entries = self._partitions[hash_value]
        del entries[bisect_left(entries, entry)]
        if not entries:
            del self._partitions[hash_value]


class TableOrder:
    """All orders of one table. Whoever changes an item says so with ``touch``."""

    def __init__(self, table: Table) -> None:
        self.items: dict[Key, Item] = {}
        self.base = IndexOrder(table.schema)
        self._indexes = {index.name: IndexOrder(index.schema) for index in table.all_indexes()}
        for stored in _stored_items(table):
            self.touch(key_of(stored), stored)

    def index(self, name: str | None) -> IndexOrder | None:
        """Return the table's own order or that of an index; None if there is no index of this name."""
        return self.base if name is None else self._indexes.get(name)

    def touch(self, key: Key, item: Item | None) -> None:
        """Set the item that has this key now; None means it is gone."""
        if item is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item
        for order in (self.base, *self._indexes.values()):
            order.place(key, item)


def key_of(item: Item) -> Key:
    return sortable(item.hash_key), NOTHING if item.range_key is None else sortable(item.range_key)


def _stored_items(table: Table) -> Iterable[Any]:
    for stored in table.items.values():
        yield from stored.values() if table.range_key_attr else (stored,)
