"""The kinds of values in a policy document: each reads one value and notes what is wrong with it.

A value that is not acceptable is read as None or as a substitute, as the document is refused anyway.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeGuard, TypeVar

from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.patterns import BadPatternError, TextPattern, parse_pattern

MAX_COUNT = 1_000_000  # more than any account has of anything; keeps sums and table numbers exact
MAX_DURATION = timedelta(days=3650)  # keeps every instant plus a duration inside the calendar
_GROUPED = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?|[0-9]{1,3}(?:[, '_][0-9]{3}){1,4}(?:\.[0-9]{1,6})?")
_SCIENTIFIC = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?[eE]\+?[0-9]{1,2}")
DURATION = "[0-9]{1,9}[smhd]"
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION_HINT = "write a whole number and a unit: 30s, 15m, 24h or 3d"

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Made = TypeVar("Made")
OneOf = TypeVar("OneOf", bound=StrEnum)


class Kind(Protocol[T_co]):
    def read(self, written: object, at: Location) -> T_co | None: ...


@dataclass(frozen=True, slots=True)
class Flag:
    def read(self, written: object, at: Location) -> bool | None:
        if isinstance(written, bool):
            return written
        at.refuse(f"must be true or false, not {shown(written)}", "write true or false")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number."""

    least: int = 0
    most: int = MAX_COUNT

    def read(self, written: object, at: Location) -> int:
        if isinstance(written, int) and not isinstance(written, bool) and self.least <= written <= self.most:
            return written
        bounds = f"{self.least} to {self.most}"
        at.refuse(f"must be a whole number, {bounds}, not {shown(written)}", _number_hint(written, bounds))
        return self.least


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1."""

    def read(self, written: object, at: Location) -> float | None:
        if is_number(written) and 0 <= written <= 1:
            return float(written)
        at.refuse(f"must be a number, 0 to 1, not {shown(written)}", "write one like 0.5")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number, whole or not."""

    least: float
    most: float

    def read(self, written: object, at: Location) -> float | None:
        if is_number(written) and self.least <= written <= self.most:
            return float(written)
        bounds = f"{self.least:g} to {self.most:g}"
        at.refuse(f"must be a number, {bounds}, not {shown(written)}", _number_hint(written, bounds))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usd:
    """An amount of money in USD, exactly as it is written."""

    least: Decimal
    most: Decimal

    def read(self, written: object, at: Location) -> Decimal | None:
        # As floats: a Decimal does not compare with NaN.
        if is_number(written) and float(self.least) <= written <= float(self.most):
            return Decimal(str(written))
        bounds = f"{self.least} to {self.most}"
        at.refuse(f"must be an amount in USD, {bounds}, not {shown(written)}", _number_hint(written, bounds))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    least: timedelta = timedelta()
    most: timedelta = MAX_DURATION

    def read(self, written: object, at: Location) -> timedelta | None:
        if is_number(written):
            at.refuse("durations need a unit", _DURATION_HINT)
            return None
        if not isinstance(written, str) or not re.fullmatch(DURATION, written):
            at.refuse(f"is not a duration: {shown(written)}", _DURATION_HINT)
            return None
        wait = timedelta(seconds=int(written[:-1]) * _SECONDS[written[-1]])
        if not self.least <= wait <= self.most:
            bounds = f"between {duration_text(self.least)} and {duration_text(self.most)}"
            at.refuse(f"must be {bounds}, not {shown(written)}", _DURATION_HINT)
        return wait


@dataclass(frozen=True, slots=True)
class Word(Generic[OneOf]):
    """One of the words that an enumeration lists."""

    words: type[OneOf]
    called: tuple[str, str] | None = None
    """Singular and plural, e.g. ``a failure class`` and ``classes``; used for long lists, which only the hint
    names."""

    def read(self, written: object, at: Location) -> OneOf | None:
        if isinstance(written, str) and written in list(self.words):
            return self.words(written)
        near = nearest(written, self.words) if isinstance(written, str) else None
        if self.called:
            singular, plural = self.called
            at.refuse(f"is not {singular}: {shown(written)}", near or f"{plural}: {', '.join(self.words)}")
        else:
            choice = " or ".join(self.words)
            at.refuse(f"must be {choice}, not {shown(written)}", near or f"write {choice}")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Generic[T]):
    """A text of some shape, and the value that it is read as."""

    shape: str
    """Regular expression that an editor can check; ``parse`` may be stricter."""
    parse: Callable[[str], T | None]
    refusal: str
    """Beginning of the message for a text that is refused, such as ``is not a name``."""
    hint: str

    def read(self, written: object, at: Location) -> T | None:
        meant = self.parse(written) if isinstance(written, str) else None
        if meant is None:
            at.refuse(f"{self.refusal}: {shown(written)}", self.hint)
        return meant


def plain_text(shape: str, refusal: str, hint: str) -> Text[str]:
    """Return the kind of a text that is kept as it is, and has to match ``shape`` as a whole."""
    matches = re.compile(shape).fullmatch
    return Text(shape=shape, parse=lambda text: text if matches(text) else None, refusal=refusal, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(Generic[T, Made]):
    item: Kind[T]
    hint: str
    made: Callable[[Iterator[T]], Made]
    """Makes the value from the acceptable items."""
    empty: tuple[str, str] | None = None
    """Message and hint where an empty list is a mistake; None where it is allowed."""

    def read(self, written: object, at: Location) -> Made:
        if self.empty and written == []:
            at.refuse(*self.empty)
        return self.made(self._each(written, at))

    def _each(self, written: object, at: Location) -> Iterator[T]:
        for place, value in at.items(written, self.hint):
            meant = self.item.read(value, place)
            if meant is not None:
                yield meant


def list_of(item: Kind[T], hint: str, *, empty: tuple[str, str] | None = None) -> ListOf[T, tuple[T, ...]]:
    return ListOf(item=item, hint=hint, made=tuple, empty=empty)


@dataclass(frozen=True, slots=True)
class ByName(Generic[T]):
    """A mapping whose keys are names that the author chose."""

    name: Text[Any]
    value: Kind[T]

    def read(self, written: object, at: Location) -> Mapping[str, T]:
        read = {}
        for name, value in at.mapping(written).items():
            if self.name.read(name, at.below(name)) is not None:
                read[name] = self.value.read(value, at.below(name))
        return {name: value for name, value in read.items() if value is not None}


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether an author would call it a number: Python counts True as 1."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_meant(written: str) -> str | None:
    """Convert a text such as ``1,000``, ``1e3`` or a quoted 2 to the number that YAML reads.

    None if it is none.
    """
    text = written.strip()
    if _GROUPED.fullmatch(text):
        return re.sub(r"[, '_]", "", text)
    if _SCIENTIFIC.fullmatch(text):
        return f"{Decimal(text):f}"
    return None


def _number_hint(written: object, bounds: str) -> str:
    meant = number_meant(written) if isinstance(written, str) else None
    if not isinstance(written, str) or meant is None:
        return f"write a number {bounds}"
    if "," in written:
        return f"write {meant} without a comma"
    return f"write {meant} without quotes" if meant == written.strip() else f"write {meant}"


def duration_text(wait: timedelta) -> str:
    """Write a duration in the largest unit that leaves it whole, e.g. ``30m``."""
    seconds = wait // timedelta(seconds=1)
    unit = next((unit for unit, size in _SECONDS.items() if seconds and seconds % size == 0), "s")
    return f"{seconds // _SECONDS[unit]}{unit}"


_PATTERN_HINT = r"write characters, [a-z], \d, groups, | and ? * + {n,m}; it has to match the whole value"


@dataclass(frozen=True, slots=True)
class ValuePattern:
    """The kind of value that whole texts have to match."""

    def read(self, written: object, at: Location) -> TextPattern | None:
        if not isinstance(written, str) or not written:
            at.refuse(f"is not a pattern: {shown(written)}", _PATTERN_HINT)
            return None
        try:
            return parse_pattern(written)
        except BadPatternError as error:
            at.refuse(f"{error}: {shown(written)}", _PATTERN_HINT)
            return None
