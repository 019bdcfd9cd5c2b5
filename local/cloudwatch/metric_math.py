"""Metric math: the part of it that the twin knows, read, checked and computed.

An expression it does not know is an error when it is read, never a value that is missing later.
Source: CloudWatch User Guide, "Using metric math" and "Metric math syntax and functions".
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Point: TypeAlias = float | None
"""A value at one instant; None if nothing was measured then."""


class ExpressionError(ValueError):
    """Raised for an expression that makes no sense, or that the twin does not know."""


class Kind(StrEnum):
    SCALAR = "S"
    SERIES = "TS"
    ARRAY = "TS[]"


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Reference:
    id: str


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Operation:
    sign: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Overall:
    """AVG, MAX, MIN or SUM over the series of an array."""

    name: str
    array: "Node"


@dataclass(frozen=True, slots=True)
class Fill:
    value: "Node"
    number: float


Node: TypeAlias = Number | Reference | Array | Operation | Overall | Fill

_OVERALL: Mapping[str, Callable[[Sequence[float]], float]] = {
    "AVG": lambda values: sum(values) / len(values),
    "MAX": max,
    "MIN": min,
    "SUM": sum,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([A-Za-z][A-Za-z0-9_]*)|(.))")
_END = ""
_SIGNS: Sequence[frozenset[str]] = (frozenset("+-"), frozenset("*/"))
"""Signs by precedence, those that bind least first."""


def parse(text: str) -> Node:
    """Raises ExpressionError."""
    return _Reader(text).whole()


def kind_of(node: Node, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of a node, given the kinds of what it refers to. Raises ExpressionError."""
    match node:
        case Number():
            return Kind.SCALAR
        case Reference(id=name):
            return _known(name, kinds)
        case Array(items=items):
            return _listed([kind_of(member, kinds) for member in items])
        case Fill(value=value):
            return _filled(kind_of(value, kinds))
        case Overall(name=name, array=array):
            return _overall(name, kind_of(array, kinds))
        case Operation(left=left, right=right):
            return _combined(kind_of(left, kinds), kind_of(right, kinds))


def references(node: Node) -> frozenset[str]:
    """Return the ids that the expression needs."""
    match node:
        case Number():
            return frozenset()
        case Reference(id=name):
            return frozenset({name})
        case Array(items=items):
            return frozenset().union(*map(references, items))
        case Fill(value=inner) | Overall(array=inner):
            return references(inner)
        case Operation(left=left, right=right):
            return references(left) | references(right)


def compute(node: Node, points: Mapping[str, Point]) -> Point:
    """Compute a node that gives a series or a number, at one instant; ``points`` has its references."""
    match node:
        case Number(value=value):
            return value
        case Reference(id=name):
            return points[name]
        case Fill(value=value, number=number):
            point = compute(value, points)
            return number if point is None else point
        case Overall(name=name, array=array):
            known = [point for point in _each(array, points) if point is not None]
            return _OVERALL[name](known) if known else None
        case Operation(sign=sign, left=left, right=right):
            return _apply(sign, compute(left, points), compute(right, points))
        case Array():
            raise AssertionError("an array is no point")


def _each(node: Node, points: Mapping[str, Point]) -> list[Point]:
    """Return the points of an array at one instant; any other node counts as an array of one."""
    match node:
        case Array(items=items):
            return [compute(member, points) for member in items]
        case Fill(value=value, number=number):
            return [number if point is None else point for point in _each(value, points)]
        case Operation(sign=sign, left=left, right=right):
            lefts, rights = _each(left, points), _each(right, points)
            longest = max(len(lefts), len(rights))
            pairs = zip(_stretched(lefts, longest), _stretched(rights, longest), strict=True)
            return [_apply(sign, first, other) for first, other in pairs]
        case _:
            return [compute(node, points)]


def _stretched(points: list[Point], length: int) -> list[Point]:
    return points * length if len(points) == 1 else points


def _apply(sign: str, left: Point, right: Point) -> Point:
    """Compute an operation; missing values and divisions by zero give nothing."""
    if left is None or right is None or (sign == "/" and right == 0):
        return None
    return _ARITHMETIC[sign](left, right)


def _known(name: str, kinds: Mapping[str, Kind]) -> Kind:
    if name not in kinds:
        raise ExpressionError(f"there is no metric or expression with the id {name!r}")
    return kinds[name]


def _listed(kinds: Sequence[Kind]) -> Kind:
    if any(kind is not Kind.SERIES for kind in kinds):
        raise ExpressionError("an array holds time series alone")
    return Kind.ARRAY


def _overall(name: str, kind: Kind) -> Kind:
    if kind is not Kind.ARRAY:
        raise ExpressionError(f"the twin knows {name} of an array of time series alone")
    return Kind.SERIES


def _filled(kind: Kind) -> Kind:
    if kind is Kind.SCALAR:
        raise ExpressionError("FILL takes a time series, or an array of them")
    return kind


def _combined(left: Kind, right: Kind) -> Kind:
    if left is right is Kind.ARRAY:
        raise ExpressionError("the twin does not combine two arrays")
    return max(left, right, key=[Kind.SCALAR, Kind.SERIES, Kind.ARRAY].index)


class _Reader:
    """Reads words from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [next(filter(None, found), _END) for found in _TOKEN.findall(text.rstrip())]
        self._place = 0

    def whole(self) -> Node:
        node = self._sum()
        if self._next != _END:
            raise self._error(f"{self._next!r} was not expected")
        return node

    @property
    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else _END

    def _take(self) -> str:
        word = self._next
        self._place += 1
        return word

    def _expect(self, word: str) -> None:
        if (token := self._take()) != word:
            raise self._error(f"{word!r} was expected, not {token!r}")

    def _error(self, problem: str) -> ExpressionError:
        return ExpressionError(f"{self._text!r}: {problem}")

    def _sum(self, level: int = 0) -> Node:
        if level == len(_SIGNS):
            return self._factor()
        node = self._sum(level + 1)
        while self._next in _SIGNS[level]:
            node = Operation(self._take(), node, self._sum(level + 1))
        return node

    def _factor(self) -> Node:
        word = self._take()
        if word == "-":
            return Operation("-", Number(0), self._factor())
        if word == "(":
            node = self._sum()
            self._expect(")")
            return node
        if word == "[":
            return Array(tuple(self._list("]")))
        if word[:1].isdigit():
            return Number(float(word))
        if word[:1].isalpha():
            return self._call(word) if self._next == "(" else self._reference(word)
        raise self._error(f"{word!r} was not expected" if word else "it ends too early")

    def _reference(self, name: str) -> Node:
        if not name[0].islower():
            raise self._error(f"{name!r} is no id: they begin with a lower case letter")
        return Reference(name)

    def _call(self, name: str) -> Node:
        if name not in {*_OVERALL, "FILL"}:
            raise self._error(f"the twin does not know the function {name}")
        self._expect("(")
        given = self._list(")")
        if name == "FILL":
            return self._fill(given)
        if len(given) != 1:
            raise self._error(f"{name} takes one array")
        return Overall(name, given[0])

    def _fill(self, given: list[Node]) -> Node:
        match given:
            case [value, Number(value=number)]:
                return Fill(value, number)
            case [value, Operation(sign="-", left=Number(value=0), right=Number(value=number))]:
                return Fill(value, -number)
            case _:
                raise self._error("the twin knows FILL with a time series and a number alone")

    def _list(self, end: str) -> list[Node]:
        items = [self._sum()]
        while self._next == ",":
            self._take()
            items.append(self._sum())
        self._expect(end)
        return items
