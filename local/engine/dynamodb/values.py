"""Attribute values between the wire's JSON and moto's types, their limits and their sizes."""

import base64
from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from moto.dynamodb.models.dynamo_type import DynamoType, Item

from local.wire import AwsError

Wire: TypeAlias = dict[str, Any]
"""An attribute value as JSON: ``{"S": "x"}``; or an item: name -> value."""

MAX_ITEM_BYTES = 400 * 1024
"""Source: DynamoDB developer guide, "Service, account, and table quotas"; likewise the next four."""
_MAX_DIGITS = 38
_LARGEST = Decimal("9.9999999999999999999999999999999999999E+125")
_SMALLEST = Decimal("1E-130")
_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
_SETS = frozenset({"SS", "NS", "BS"})


def invalid(message: str) -> AwsError:
    return AwsError("ValidationException", message)


def checked(value: Mapping[str, Any]) -> Wire:
    """Check a value and return it with its numbers in DynamoDB's form. Raises AwsError."""
    if len(value) != 1 or not _TYPES.issuperset(value):
        raise invalid(
            "Supplied AttributeValue is empty or has several types, "
            "must contain exactly one of the supported datatypes"
        )
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return {"N": number(content)}
        case "L":
            return {"L": [checked(element) for element in content]}
        case "M":
            return {"M": {name: checked(element) for name, element in content.items()}}
        case _ if kind in _SETS:
            return {kind: _checked_set(kind, content)}
        case _:
            return {kind: content}


def number(text: str) -> str:
    """Return the canonical form of a number, within DynamoDB's precision and range."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise invalid(f"The parameter cannot be converted to a numeric value: {text}")
    canonical = value.normalize(Context(prec=len(text)))
    if len(canonical.as_tuple().digits) > _MAX_DIGITS:
        raise invalid("Attempting to store more than 38 significant digits in a Number")
    if value and not _SMALLEST <= abs(value) <= _LARGEST:
        raise invalid("Number overflow or underflow: outside the supported range")
    return f"{canonical:f}" if value else "0"


def _checked_set(kind: str, members: list[str]) -> list[str]:
    if not members:
        raise invalid("One or more parameter values were invalid: An set may not be empty")
    canonical = [number(member) for member in members] if kind == "NS" else list(members)
    if len(set(canonical)) != len(canonical):
        raise invalid("One or more parameter values were invalid: Input collection contains duplicates")
    return canonical


def to_wire(value: DynamoType) -> Wire:
    content = value.value
    match value.type:
        case "M":
            return {"M": {name: to_wire(element) for name, element in content.items()}}
        case "L":
            return {"L": [to_wire(element) for element in content]}
        case "B":
            return {"B": _base64_text(content)}
        case "BS":
            return {"BS": [_base64_text(member) for member in content]}
        case _:
            return {value.type: list(content) if isinstance(content, (list, set)) else content}


def item_to_wire(item: Item) -> Wire:
    return {name: to_wire(value) for name, value in item.attrs.items()}


def make_item(hash_key: DynamoType, range_key: DynamoType | None, attributes: Mapping[str, Any]) -> Item:
    """Make an item of moto's with a plain dictionary (moto's own measures all at each change)."""
    item = Item(hash_key, range_key, attrs={})
    item.attrs = {name: DynamoType(value) for name, value in attributes.items()}
    return item


def item_bytes(attributes: Mapping[str, Any]) -> int:
    """Return the size of an item.

    Source: DynamoDB developer guide, "DynamoDB item sizes and formats".
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in attributes.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return _number_bytes(content)
        case "B":
            return len(as_bytes(content))
        case "M":
            return 3 + sum(
                1 + len(name.encode()) + _value_bytes(element) for name, element in content.items()
            )
        case "L":
            return 3 + sum(1 + _value_bytes(element) for element in content)
        case _ if kind in _SETS:
            return sum(_value_bytes({kind[0]: member}) for member in content)
        case _:
            return 1


def _number_bytes(text: str) -> int:
    return (len(text.strip("-0.").replace(".", "")) + 1) // 2 + 1


def as_bytes(content: str | bytes) -> bytes:
    """Return binary content, which moto keeps as it came, as base64 or decoded."""
    return content if isinstance(content, bytes) else base64.b64decode(content)


def _base64_text(content: str | bytes) -> str:
    return base64.b64encode(content).decode() if isinstance(content, bytes) else content
