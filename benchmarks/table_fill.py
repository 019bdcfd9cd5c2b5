"""Rows of many jobs without the hours it would take to write them one by one: what a store would have left.

The operations come from the store itself; of those on one row only what is left of them is sent.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

BATCH = 25
"""Source: DynamoDB API reference, BatchWriteItem."""
_PART = re.compile(r"\b(ADD|SET|REMOVE)\b")

Send = Callable[[str, Mapping[str, Any]], object]
Item = dict[str, Any]


class Rows:
    """Stands for the client of a store: keeps what is left of its transactions instead of sending them.

    Conditions are taken to hold.
    """

    def __init__(self) -> None:
        self._puts: dict[tuple[str, str], Item] = {}
        self._sums: dict[tuple[str, str], dict[str, int]] = {}
        self._sets: dict[tuple[str, str], Item] = {}

    def transact_write_items(self, **transaction: Any) -> dict[str, Any]:
        for entry in transaction["TransactItems"]:
            ((kind, operation),) = entry.items()
            match kind:
                case "Put":
                    self._puts[_key(operation["Item"])] = operation["Item"]
                case "Delete":
                    self._puts.pop(_key(operation["Key"]), None)
                case "Update":
                    self._update(operation)
                case _:
                    raise LookupError(f"no store was known to send {kind} for a submission or a start")
        return {}

    def _update(self, operation: Mapping[str, Any]) -> None:
        key, values = _key(operation["Key"]), operation["ExpressionAttributeValues"]
        names = operation["ExpressionAttributeNames"]
        _, *parts = _PART.split(operation["UpdateExpression"])
        for what, clauses in zip(parts[::2], parts[1::2], strict=True):
            for name, value, is_first in map(_clause, re.split(r",(?![^(]*\))", clauses)):
                attribute = names.get(name, name)
                if what == "ADD":
                    sums = self._sums.setdefault(key, {})
                    sums[attribute] = sums.get(attribute, 0) + int(values[value]["N"])
                elif is_first:
                    self._sets.setdefault(key, {}).setdefault(attribute, values[value])
                else:
                    self._sets.setdefault(key, {})[attribute] = values[value]

    def send(self, table: str, send: Send) -> None:
        """Send all rows, and begin again; counters are added to what the table has."""
        puts = [{"PutRequest": {"Item": row}} for row in self._puts.values()]
        for start in range(0, len(puts), BATCH):
            send("BatchWriteItem", {"RequestItems": {table: puts[start : start + BATCH]}})
        for key in {**self._sums, **self._sets}:
            send("UpdateItem", {"TableName": table} | self._merged(key))
        self.__init__()  # type: ignore[misc]

    def _merged(self, key: tuple[str, str]) -> dict[str, Any]:
        sums = {name: {"N": str(number)} for name, number in self._sums.get(key, {}).items()}
        sets = self._sets.get(key, {})
        names = {f"#n{number}": name for number, name in enumerate((*sums, *sets))}
        of = {name: alias[2:] for alias, name in names.items()}
        added = ", ".join(f"#n{of[name]} :v{of[name]}" for name in sums)
        put = ", ".join(f"#n{of[name]} = :v{of[name]}" for name in sets)
        return {
            "Key": {"pk": {"S": key[0]}, "sk": {"S": key[1]}},
            "UpdateExpression": " ".join(
                (*(["ADD " + added] if added else []), *(["SET " + put] if put else []))
            ),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {f":v{of[name]}": value for name, value in (sums | sets).items()},
        }


def _key(attributes: Mapping[str, Any]) -> tuple[str, str]:
    return attributes["pk"]["S"], attributes["sk"]["S"]


def _clause(text: str) -> tuple[str, str, bool]:
    """Name, value, and whether only a first value is kept."""
    first, *_ = re.findall(r"[#:]?\w+", text)
    (value,) = re.findall(r":\w+", text)
    return first, value, "if_not_exists" in text
