"""Query and Scan: one page of an index, read in order from where the last one ended."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from moto.dynamodb.models.dynamo_type import DynamoType, Item

from local.engine.dynamodb.expressions import (
    Condition,
    Params,
    check_placeholders,
    project,
    projection,
    text_of,
)
from local.engine.dynamodb.key_conditions import key_condition
from local.engine.dynamodb.order import NOTHING, Entry, IndexOrder, Key, Sortable, sortable
from local.engine.dynamodb.tables import Table, Tables
from local.engine.dynamodb.values import Wire, checked, invalid, item_bytes, item_to_wire

MAX_PAGE_BYTES = 1024 * 1024
"""Source: API reference, Query: a page ends at 1 MB, measured before the filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The table and index that a page is read from."""

    table: Table
    index: IndexOrder
    schema: Sequence[Mapping[str, str]]
    kept: frozenset[str] | None
    """Attributes that are projected into the index; None: all."""

    @property
    def key_names(self) -> tuple[str, ...]:
        names = (*self.table.key_names, *(part["AttributeName"] for part in self.schema))
        return tuple(dict.fromkeys(names))

    def wire(self, item: Item) -> Wire:
        attributes = item_to_wire(item)
        if self.kept is None:
            return attributes
        return {name: value for name, value in attributes.items() if name in self.kept}


def query(tables: Tables, region: str, params: Params) -> Wire:
    check_placeholders(params)
    source = _source(tables, region, params)
    condition = key_condition(params, source.schema, source.table.types)
    entries = source.index.entries(condition.partition)
    first, last = condition.span(entries)
    forward = params.get("ScanIndexForward", True)
    if (start := _start(source, params)) is not None:
        if forward:
            first = max(first, bisect_right(entries, start[1]))
        else:
            last = min(last, bisect_left(entries, start[1]))
    positions = range(first, last) if forward else range(last - 1, first - 1, -1)
    return _page(source, params, (entries[position][1] for position in positions))


def scan(tables: Tables, region: str, params: Params) -> Wire:
    check_placeholders(params)
    source = _source(tables, region, params)
    return _page(source, params, _scanned(source, params))


def _scanned(source: _Source, params: Params) -> Iterator[Key]:
    start = _start(source, params)
    segment, segments = params.get("Segment", 0), params.get("TotalSegments", 1)
    for hash_value in source.index.partitions():
        if crc32(str(hash_value).encode()) % segments != segment:
            continue
        entries = source.index.entries(hash_value)
        if start is None or hash_value > start[0]:  # type: ignore[operator]  # of one type in one index
            yield from (key for _, key in entries)
        elif hash_value == start[0]:
            yield from (key for _, key in entries[bisect_right(entries, start[1]) :])


def _page(source: _Source, params: Params, keys: Iterable[Key]) -> Wire:
    wanted, paths = Condition(_with_checked(params), "FilterExpression"), projection(params)
    _check_filter(source, params)
    limit, size, last = params.get("Limit"), 0, None
    read: list[Item] = []
    for key in keys:
        if (limit is not None and len(read) == limit) or size >= MAX_PAGE_BYTES:
            last = read[-1]
            break
        read.append(source.table.order.items[key])
        size += item_bytes(source.wire(read[-1]))
    if limit is not None and len(read) == limit:
        last = read[-1]  # DynamoDB does not look whether there is more
    matching = [source.wire(candidate) for candidate in read if wanted.holds(candidate)]
    page: Wire = {"Count": len(matching), "ScannedCount": len(read)}
    if params.get("Select") != "COUNT":
        page["Items"] = [project(match, paths) for match in matching]
    if last is not None:
        attributes = item_to_wire(last)
        page["LastEvaluatedKey"] = {name: attributes[name] for name in source.key_names}
    return page


def _check_filter(source: _Source, params: Params) -> None:
    names = params.get("ExpressionAttributeNames") or {}
    words = (
        (text_of(params, "FilterExpression") or "")
        .replace("(", " ")
        .replace(")", " ")
        .replace(",", " ")
        .split()
    )
    keys = {part["AttributeName"] for part in source.schema}
    for word in words:
        if names.get(word, word) in keys:
            raise invalid(
                "Filter Expression can only contain non-primary key attributes: "
                f"Primary key attribute: {names.get(word, word)}"
            )


def _source(tables: Tables, region: str, params: Params) -> _Source:
    table, name = tables.find(region, params["TableName"]), params.get("IndexName")
    index = table.order.index(name)
    if index is None:
        raise invalid(f"The table does not have the specified index: {name}")
    if name is None:
        return _Source(table=table, index=index, schema=table.moto.schema, kept=None)
    if params.get("ConsistentRead") and name in {
        index_model.name for index_model in table.moto.global_indexes
    }:
        raise invalid("Consistent reads are not supported on global secondary indexes")
    moto = table.moto.get_index(name)
    kept = None
    if moto.projection.get("ProjectionType", "ALL") != "ALL":
        keys = {part["AttributeName"] for part in moto.schema} | set(table.key_names)
        kept = frozenset(keys | set(moto.projection.get("NonKeyAttributes", ())))
    return _Source(table=table, index=index, schema=moto.schema, kept=kept)


def _start(source: _Source, params: Params) -> tuple[Sortable, Entry] | None:
    """Return partition value and entry of ExclusiveStartKey; its item may be gone."""
    key = params.get("ExclusiveStartKey")
    if key is None:
        return None
    if set(key) != set(source.key_names):
        raise invalid("The provided starting key is invalid")
    value = {name: sortable(DynamoType(checked(attribute))) for name, attribute in key.items()}
    own = [value[name] for name in source.table.key_names]
    item_key = (own[0], own[1] if len(own) > 1 else NOTHING)
    range_value = value[source.index.range_name] if source.index.range_name else NOTHING
    return value[source.index.hash_name], (range_value, item_key)


def _with_checked(params: Params) -> Params:
    values = params.get("ExpressionAttributeValues") or {}
    return {**params, "ExpressionAttributeValues": {name: checked(value) for name, value in values.items()}}
