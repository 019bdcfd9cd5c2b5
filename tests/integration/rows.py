"""All rows of a table, read and put back."""

from collections.abc import Sequence
from typing import Any

Item = dict[str, Any]
BATCH = 25
"""Requests of one BatchWriteItem. Source: DynamoDB limits."""


def all_items(dynamodb: Any, table: str) -> tuple[Item, ...]:
    pages = dynamodb.get_paginator("scan").paginate(TableName=table)
    return tuple(item for page in pages for item in page["Items"])


def put_back(dynamodb: Any, table: str, items: Sequence[Item]) -> None:
    """The table has these items and no others."""
    now, then = ({_key_of(item): item for item in some} for some in (all_items(dynamodb, table), items))
    requests: list[Item] = [{"DeleteRequest": {"Key": _key(key)}} for key in now.keys() - then.keys()]
    requests += [{"PutRequest": {"Item": item}} for key, item in then.items() if now.get(key) != item]
    for start in range(0, len(requests), BATCH):
        dynamodb.batch_write_item(RequestItems={table: requests[start : start + BATCH]})


def _key_of(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _key(key: tuple[str, str]) -> Item:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
