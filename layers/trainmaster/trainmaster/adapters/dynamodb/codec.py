"""Frozen dataclasses to DynamoDB's attribute values and back, by their type hints.

Instants are ISO 8601 UTC with milliseconds, durations seconds, vectors one line of text (``vector_text``);
None is left out.
"""

import types
import typing
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from trainmaster.core.costs.ledger import Cause, MonthAccount, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.instances import Capacity, Vector, parse_vector, vector_text
from trainmaster.core.planning.snapshot import AccountLimit

T = TypeVar("T")
AttributeMap = dict[str, Any]
"""DynamoDB JSON: ``{"name": {"S": "..."}}``."""

_HINTS: dict[type, dict[str, Any]] = {}
_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def to_attributes(values: Mapping[str, Any]) -> AttributeMap:
    return {name: _serialize(value) for name, value in values.items()}


def from_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(_deserialize(value)) for name, value in attributes.items()}


def value(content: object) -> dict[str, Any]:
    """One attribute value."""
    return dict(_serialize(content))


def encode(record: Any) -> dict[str, Any]:
    """A dataclass as plain values that ``to_attributes`` takes."""
    hints = _hints(type(record))
    encoded = {
        field.name: _encode(getattr(record, field.name), hints[field.name]) for field in fields(record)
    }
    return {name: content for name, content in encoded.items() if content is not None}


def decode(cls: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass that ``encode`` was given; unknown names are ignored."""
    hints = _hints(cls)
    known = {
        field.name: _decode(hints[field.name], values[field.name])
        for field in fields(cls)  # type: ignore[arg-type]
        if field.name in values
    }
    optional = {
        field.name: None
        for field in fields(cls)  # type: ignore[arg-type]
        if field.name not in known and type(None) in typing.get_args(hints[field.name])
    }
    return cls(**optional, **known)


def _hints(cls: type) -> dict[str, Any]:
    """Resolved once a class: this runs for each row read."""
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls)
    return _HINTS[cls]


def iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def _encode(content: Any, hint: Any) -> Any:
    if hint == Vector:
        return vector_text(content)
    match content:
        case tuple():
            return [_encode(part, None) for part in content]
        case Mapping():
            return {str(name): _encode(part, None) for name, part in content.items()}
        case _ if is_dataclass(content):
            return encode(content)
        case _:
            return _encode_scalar(content)


def _encode_scalar(content: Any) -> Any:
    match content:
        case datetime():
            return iso(content)
        case timedelta():
            return int(content.total_seconds())
        case Decimal():
            return str(content)  # a number would come back as int or float
        case Enum():
            return content.value
        case _:
            return content


def _decode(hint: Any, content: Any) -> Any:
    if hint == Vector:
        return parse_vector(content)
    hint = _without_none(hint)
    if hint is datetime:
        return datetime.fromisoformat(content)
    if hint is timedelta:
        return timedelta(seconds=content)
    if typing.get_origin(hint) is tuple:
        part = typing.get_args(hint)[0]
        return tuple(_decode(part, one) for one in content)
    if hint is Decimal:
        return Decimal(content)
    if isinstance(hint, type) and is_dataclass(hint):
        return decode(hint, content)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(content)
    return content


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _plain(content: Any) -> Any:
    """Decimal and Binary are DynamoDB's business."""
    match content:
        case Decimal():
            return int(content) if content == content.to_integral_value() else float(content)
        case dict():
            return {name: _plain(part) for name, part in content.items()}
        case list():
            return [_plain(part) for part in content]
        case _:
            return content


def counts(item: dict[str, Any], prefix: str) -> dict[Capacity, int]:
    return {Capacity.parse(name): count for name, count in named(item, prefix) if count}


def limits(counters: dict[str, Any]) -> dict[Capacity, AccountLimit]:
    return {Capacity.parse(name): decode(AccountLimit, limit) for name, limit in named(counters, "limit#")}


def last_ends(counters: dict[str, Any]) -> dict[Capacity, datetime]:
    return {Capacity.parse(name): datetime.fromisoformat(at) for name, at in named(counters, "ended#")}


def named(item: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Attributes of one kind, without the kind in their names."""
    return ((name.removeprefix(prefix), part) for name, part in item.items() if name.startswith(prefix))


def run_times_of(item: dict[str, Any]) -> RunTimes:
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, "b#"):
        limit, _, length = name.partition("#")
        counts[int(limit)][int(length)] = count
    by_month: dict[str, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, "n#"):
        month, _, priority = name.partition("#")
        by_month[month][int(priority)] = count
    return RunTimes(
        last=timedelta(seconds=item["t1"]),
        previous=timedelta(seconds=item["t2"]),
        since=datetime.fromisoformat(item["since"]),
        counts=counts,
        by_month=by_month,
    )


def account_of(item: dict[str, Any]) -> MonthAccount:
    spent = item.get("spent", 0)
    return MonthAccount(spent=spent, reserved=item.get("committed", 0) - spent)


def usage_line(item: dict[str, Any]) -> UsageLine:
    by = {Cause(name): cents for name, cents in named(item, "by#")}
    return UsageLine(
        job=item["sk"].removeprefix("j#"),
        instance_seconds=item.get("instance_seconds", 0),
        cents=None if item.get("unpriced") else sum(by.values()),
        by=by,
        saved_cents=item.get("saved", 0),
    )


def spot_day(item: dict[str, Any]) -> SpotDay:
    return SpotDay(
        day=date.fromisoformat(item["sk"].rpartition("#")[2]),
        interruptions=item.get("interruptions", 0),
        instance_seconds=item.get("instance_seconds", 0),
    )


def ties_by_name(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Equal instants come from the index in no order of their own: newest first, then by name."""
    tied: list[tuple[str, str]] = []
    for one in found:
        if tied and tied[0][0] != one[0]:
            yield from sorted(tied)
            tied = []
        tied.append(one)
    yield from sorted(tied)


def is_behind(one: tuple[str, str], after: tuple[str, str]) -> bool:
    return one[0] < after[0] or (one[0] == after[0] and one[1] > after[1])
