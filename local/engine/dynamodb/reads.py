"""Reads of items by their keys: one, a batch, a transaction."""

from collections.abc import Sequence

from local.engine.dynamodb.expressions import Params, check_placeholders, project, projection
from local.engine.dynamodb.tables import Tables
from local.engine.dynamodb.values import Wire, invalid, item_to_wire

MAX_ITEMS = 100
"""Most items of a BatchGetItem and of a TransactGetItems. Source: API reference."""


def get_item(tables: Tables, region: str, params: Params) -> Wire:
    check_placeholders(params)
    paths = projection(params)
    table = tables.find(region, params["TableName"])
    item = table.get(table.key(params["Key"]))
    return {} if item is None else {"Item": project(item_to_wire(item), paths)}


def batch_get_item(tables: Tables, region: str, params: Params) -> Wire:
    requests = [
        {**rest, "TableName": name, "Key": key}
        for name, rest in params["RequestItems"].items()
        for key in rest["Keys"]
    ]
    if not 1 <= len(requests) <= MAX_ITEMS:
        raise invalid("Too many items requested for the BatchGetItem call")
    _check_distinct(tables, region, requests)
    responses: dict[str, list[Wire]] = {name: [] for name in params["RequestItems"]}
    for request in requests:
        responses[request["TableName"]] += get_item(tables, region, request).values()
    return {"Responses": responses, "UnprocessedKeys": {}}


def transact_get_items(tables: Tables, region: str, params: Params) -> Wire:
    """Read items at one instant: the engine serves one request at a time, so nothing changes in between."""
    requests = [action["Get"] for action in params["TransactItems"]]
    if not 1 <= len(requests) <= MAX_ITEMS:
        raise invalid(
            f"Member must have length less than or equal to {MAX_ITEMS}, greater than or equal to 1"
        )
    _check_distinct(tables, region, requests)
    return {"Responses": [get_item(tables, region, request) for request in requests]}


def _check_distinct(tables: Tables, region: str, requests: Sequence[Params]) -> None:
    read_tables = [tables.find(region, request["TableName"]) for request in requests]
    keys = {
        (table.name, table.key(request["Key"])) for table, request in zip(read_tables, requests, strict=True)
    }
    if len(keys) != len(requests):
        raise invalid("Provided list of item keys contains duplicates")
