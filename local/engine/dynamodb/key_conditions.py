"""Key conditions of a query: which partition, and which range of its entries."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.parsing.key_condition_expression import parse_expression

from local.engine.dynamodb.expressions import Params, text_of
from local.engine.dynamodb.order import Entry, Sortable, sortable
from local.engine.dynamodb.values import checked, invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCondition:
    partition: Sortable
    comparison: str | None
    """Comparison with the sort value; None accepts any."""
    operands: tuple[Sortable, ...]

    def span(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """Return the positions from (inclusive) and to (exclusive) that the entries match."""
        if self.comparison is None:
            return 0, len(entries)
        low, high = self.operands[0], self.operands[-1]
        first, after = bisect_left(entries, low, key=_value), bisect_right(entries, high, key=_value)
        match self.comparison:
            case "=" | "BETWEEN":
                return first, after
            case "<":
                return 0, first
            case "<=":
                return 0, after
            case ">":
                return after, len(entries)
            case ">=":
                return first, len(entries)
            case _:  # BEGINS_WITH
                return first, bisect_left(entries, 1, lo=first, key=lambda entry: not _begins(entry[0], low))


def key_condition(
    params: Params, schema: Sequence[Mapping[str, str]], types: Mapping[str, str]
) -> KeyCondition:
    """Parse a query's KeyConditionExpression. Raises AwsError."""
    text = text_of(params, "KeyConditionExpression")
    if text is None:
        raise invalid(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    values = {name: checked(value) for name, value in params.get("ExpressionAttributeValues", {}).items()}
    names = params.get("ExpressionAttributeNames", {})
    try:
        hashes, ranges, _ = parse_expression(text, values, names, list(schema))
    except MockValidationException as error:
        raise invalid(error.exception_msg) from error
    ((name, value),) = hashes
    partition = _operand(name, value, types)
    if not ranges:
        return KeyCondition(partition=partition, comparison=None, operands=())
    ((name, comparison, operands),) = ranges
    parsed = tuple(_operand(name, operand, types) for operand in operands)
    if comparison not in _COMPARISONS or len(parsed) != _COMPARISONS[comparison]:
        raise invalid(f"Invalid KeyConditionExpression: Syntax error; token: {comparison}")
    return KeyCondition(partition=partition, comparison=comparison, operands=parsed)


_COMPARISONS: Mapping[str, int] = {"=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "BETWEEN": 2, "BEGINS_WITH": 1}
"""Each with the number of its operands."""


def _operand(name: str, value: Any, types: Mapping[str, str]) -> Sortable:  # noqa: ANN401  moto may give a text
    if not isinstance(value, Mapping) or types[name] not in value:
        raise invalid(
            "One or more parameter values were invalid: Condition parameter type does not match schema type"
        )
    return sortable(DynamoType(value))


def _value(entry: Entry) -> Sortable:
    return entry[0]


def _begins(value: Sortable, prefix: Sortable) -> bool:
    """Tell whether a value begins with a prefix; numbers, which DynamoDB refuses, never do."""
    if isinstance(value, str) and isinstance(prefix, str):
        return value.startswith(prefix)
    return isinstance(value, bytes) and isinstance(prefix, bytes) and value.startswith(prefix)
