"""Convert frozen dataclasses to plain values and back, by their type hints.

Instants are ISO 8601 UTC with milliseconds, durations seconds, vectors one line of text (``vector_text``);
None is left out.
"""

import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from trainmaster.adapters.dynamodb.stored_names import PARTS, stored_name
from trainmaster.core.costs.ledger import Cause, MonthAccount, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.durations.learned_rows import LATEST, LearnedRow
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.instances import Vector, parse_known, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode, parse_code

T = TypeVar("T")

RUNS_OF, RUNS_IN = "b#", "n#"
"""Prefixes of attributes of run times: jobs by buckets of limit and length; completed by month, priority."""
LEARNED, NEWEST = "w#", "newest"
"""Attributes of learned lengths: the prefix of weights by bucket, and when the last one was added."""
LATEST_RUN, PLACED = "r#", "q#"
"""Prefixes of the lengths of the last runs in seconds, from 0 for the newest, and of weights by place; rows
stored before they were kept have neither."""
SPENT_ON = "by#"
"""Prefix of the attributes of a job's usage that hold cents by cause."""
UNSEEN = "unseen"
"""Attribute of a usage row: the productive cents whose training no checkpoint was seen to cover."""

_STORED: dict[type, "_StoredClass"] = {}
_ENCODERS: dict[type, Callable[[Any], Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredField:
    """Describes how one field is kept: in an attribute, or as a part among its owner's attributes."""

    field: str
    name: str
    optional: bool
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any] | None
    """Turns the stored value into the field's; None if it is stored as it is."""
    part: "_StoredClass | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredClass:
    cls: type
    fields: tuple[_StoredField, ...]
    mandatory: tuple[str, ...]
    """Attributes that every stored object of the class has."""
    defaults: Mapping[str, Any]
    """Attributes, with their values, of an object whose fields have their defaults."""


def _stored(cls: type) -> _StoredClass:
    """Describe how a class is stored, once a class, as this runs for each row read."""
    if cls not in _STORED:
        _STORED[cls] = _stored_class(cls)
    return _STORED[cls]


def _stored_class(cls: type) -> _StoredClass:
    hints = typing.get_type_hints(cls)
    kept = [field for field in fields(cls) if field.init]  # the others follow from these
    stored = [_stored_field(cls, field.name, hints[field.name]) for field in kept]
    mandatory: list[str] = []
    defaults: dict[str, Any] = {}
    for field, stored_field in zip(kept, stored, strict=True):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if stored_field.part is not None:
            defaults |= stored_field.part.defaults
        elif default is MISSING:
            mandatory.append(stored_field.name)
        elif default is not None:
            defaults[stored_field.name] = stored_field.encode(default)
    return _StoredClass(cls=cls, fields=tuple(stored), mandatory=tuple(mandatory), defaults=defaults)


def _stored_field(cls: type, field: str, declared: Any) -> _StoredField:
    hint = _without_none(declared)
    return _StoredField(
        field=field,
        name=stored_name(cls, field),
        optional=type(None) in typing.get_args(declared),
        encode=vector_text if hint == Vector else _encode,
        decode=_decoder(hint),
        part=_stored(hint) if hint in PARTS else None,
    )


def encode(record: Any) -> dict[str, Any]:
    """Turn a dataclass into plain values that ``to_attributes`` takes.

    None is left out; of a part that is None the defaults of its fields are kept.
    """
    encoded: dict[str, Any] = {}
    for field in _stored(type(record)).fields:
        content = getattr(record, field.field)
        if type(content) in _AS_IT_IS:
            encoded[field.name] = content
        elif field.part is not None:
            encoded |= field.part.defaults if content is None else encode(content)
        elif content is not None:
            encoded[field.name] = field.encode(content)
    return encoded


def decode(cls: type[T], values: Mapping[str, Any]) -> T:
    """Restore the dataclass that ``encode`` was given; unknown names are ignored.

    A missing field is None or has its default: rows of an older release lack what came after it. An optional
    part is None if all its mandatory attributes are missing.
    """
    known: dict[str, Any] = {}
    for field in _stored(cls).fields:
        if field.part is not None:
            is_there = not field.optional or any(name in values for name in field.part.mandatory)
            known[field.field] = decode(field.part.cls, values) if is_there else None
        elif field.name in values:
            content = values[field.name]
            known[field.field] = content if field.decode is None else field.decode(content)
        elif field.optional:
            known[field.field] = None
    return cls(**known)


def iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def _encode(content: Any) -> Any:
    kind = type(content)
    if kind not in _ENCODERS:
        _ENCODERS[kind] = _encoder(kind)
    return _ENCODERS[kind](content)


def _encoder(kind: type) -> Callable[[Any], Any]:
    """Choose the encoder by a value's actual type, not the declared one.

    Once a type, as this runs for each value.
    """
    if issubclass(kind, tuple):
        return lambda content: [_encode(part) for part in content]
    if issubclass(kind, Mapping):
        return lambda content: {str(name): _encode(part) for name, part in content.items()}
    if is_dataclass(kind):
        return encode
    return next((encoder for base, encoder in _SCALARS if issubclass(kind, base)), lambda content: content)


_AS_IT_IS = frozenset({str, int, bool})
_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (datetime, iso),
    (timedelta, lambda content: int(content.total_seconds())),
    (Decimal, str),  # a number would come back as int or float
    (Enum, attrgetter("value")),
)


def _decoder(hint: Any) -> Callable[[Any], Any] | None:
    if hint == Vector:
        return parse_known
    if hint in _PLAIN:
        return _PLAIN[hint]
    if typing.get_origin(hint) is tuple:
        part = _decoder(_without_none(typing.get_args(hint)[0]))
        return tuple if part is None else lambda content: tuple(part(element) for element in content)
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(decode, hint)
    if isinstance(hint, type) and issubclass(hint, Decimal | Enum):
        return hint
    return None


def _of_type(wanted: type, content: Any) -> Any:
    """Return the value if it has this type, else raise TypeError before a comparison meets it."""
    if type(content) is not wanted:
        raise TypeError(f"{content!r} is not of type {wanted.__name__}")
    return content


def _instant(content: str) -> datetime:
    instant = datetime.fromisoformat(content)
    if instant.tzinfo is None:
        raise ValueError(f"{content!r} has no time zone")
    return instant


def _seconds(content: int) -> timedelta:
    return timedelta(seconds=content)


_PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    str: partial(_of_type, str),
    int: partial(_of_type, int),
    bool: partial(_of_type, bool),
    datetime: _instant,
    timedelta: _seconds,
    ReasonCode: parse_code,  # a code that a newer release wrote is kept as it is
}


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def named(item: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that begin with a prefix, without the prefix in their names."""
    return ((name.removeprefix(prefix), part) for name, part in item.items() if name.startswith(prefix))


def run_times_of(item: Mapping[str, Any]) -> RunTimes:
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, RUNS_OF):
        limit, _, length = name.partition("#")
        counts[int(limit)][int(length)] = count
    by_month: dict[str, dict[int, int]] = defaultdict(dict)
    for name, count in named(item, RUNS_IN):
        month, _, priority = name.partition("#")
        by_month[month][int(priority)] = count
    return RunTimes(
        last=timedelta(seconds=item["t1"]),
        previous=timedelta(seconds=item["t2"]),
        since=datetime.fromisoformat(item["since"]),
        counts=counts,
        by_month=by_month,
    )


def learned_year(item: Mapping[str, Any]) -> LearnedRow:
    """Decode what was learned in one year about one kind of jobs."""
    weights = {int(number): weight for number, weight in named(item, LEARNED)}
    era = int(item["sk"].split("#")[1])
    latest = (item.get(f"{LATEST_RUN}{number}", 0) for number in range(LATEST))
    placed = {int(place): weight for place, weight in named(item, PLACED)}
    return LearnedRow(
        newest=_instant(item[NEWEST]),
        weights={era: weights},
        latest=tuple(timedelta(seconds=int(seconds) - 1) for seconds in latest if seconds),
        placed={era: placed} if placed else {},
    )


def account_of(item: Mapping[str, Any]) -> MonthAccount:
    spent = item.get("spent", 0)
    return MonthAccount(spent=spent, reserved=item.get("committed", 0) - spent)


def usage_line(item: Mapping[str, Any]) -> UsageLine:
    by = {Cause(name): cents for name, cents in named(item, SPENT_ON)}
    if unseen := item.get(UNSEEN, 0):  # a part of what is stored as productive
        by |= {Cause.PRODUCTIVE: by.get(Cause.PRODUCTIVE, 0) - unseen, Cause.UNKNOWN: unseen}
    return UsageLine(
        job=item["sk"].removeprefix("j#"),
        instance_seconds=item.get("instance_seconds", 0),
        cents=None if item.get("unpriced") else sum(by.values()),
        by=by,
        saved_cents=item.get("saved", 0),
        warm_saved_cents=item.get("warm_saved", 0),
    )


def spot_day(item: Mapping[str, Any]) -> SpotDay:
    return SpotDay(
        day=date.fromisoformat(item["sk"].rpartition("#")[2]),
        interruptions=item.get("interruptions", 0),
        instance_seconds=item.get("instance_seconds", 0),
    )


def ties_by_name(ends: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Sort ties by name; the index returns the newest first, and equal instants in no order."""
    tied: list[tuple[str, str]] = []
    for end in ends:
        if tied and tied[0][0] != end[0]:
            yield from sorted(tied)
            tied = []
        tied.append(end)
    yield from sorted(tied)


def is_behind(end: tuple[str, str], after: tuple[str, str]) -> bool:
    return end[0] < after[0] or (end[0] == after[0] and end[1] > after[1])
