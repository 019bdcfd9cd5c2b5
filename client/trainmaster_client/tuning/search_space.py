"""Ranges of hyperparameters, each as a scale from 0 to 1. Pure.

Source of the scalings: SageMaker Developer Guide, "Hyperparameter scaling".
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, TypeAlias

from trainmaster_client.errors import FieldProblem

Parameters: TypeAlias = dict[str, str]
"""By name, as a training job's HyperParameters have them."""

WIDE = 1000
"""Auto is Logarithmic where the largest value is this many times the smallest."""
_NAMED = {"IntegerParameterRanges": True, "ContinuousParameterRanges": False}


class Scaling(StrEnum):
    LINEAR = "Linear"
    LOGARITHMIC = "Logarithmic"
    REVERSE_LOGARITHMIC = "ReverseLogarithmic"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    name: str
    low: float
    high: float
    is_integer: bool
    scaling: Scaling

    def at(self, position: float) -> str:
        """``position``: from 0 to 1."""
        low, high = self._ends()
        value = self._unscaled(low + position * (high - low))
        if self.is_integer:
            return str(int(min(max(round(value), self.low), self.high)))
        return repr(min(max(value, self.low), self.high))

    def position(self, text: str) -> float:
        """Where a value lies; the nearer end for one that lies outside."""
        low, high = self._ends()
        found = self._scaled(min(max(float(text), self.low), self.high))
        return 0.0 if high == low else min(max((found - low) / (high - low), 0.0), 1.0)

    def _ends(self) -> tuple[float, float]:
        """Each integer has its share of the scale: half of the way to its neighbours."""
        margin = 0.5 if self.is_integer else 0.0
        return self._scaled(self.low - margin), self._scaled(self.high + margin)

    def _scaled(self, value: float) -> float:
        match self.scaling:
            case Scaling.LINEAR:
                return value
            case Scaling.LOGARITHMIC:
                return math.log(value)
            case Scaling.REVERSE_LOGARITHMIC:
                return -math.log(1 - value)

    def _unscaled(self, found: float) -> float:
        match self.scaling:
            case Scaling.LINEAR:
                return found
            case Scaling.LOGARITHMIC:
                return math.exp(found)
            case Scaling.REVERSE_LOGARITHMIC:
                return 1 - math.exp(-found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    name: str
    values: tuple[str, ...]


Range: TypeAlias = NumberRange | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    ranges: tuple[Range, ...]

    def combinations(self) -> Iterator[Parameters]:
        """All of a space of choices, the last one changing first."""
        choices = [one for one in self.ranges if isinstance(one, Choice)]
        for values in product(*(one.values for one in choices)):
            yield {one.name: value for one, value in zip(choices, values, strict=True)}

    @property
    def combination_count(self) -> int:
        return math.prod(len(one.values) for one in self.ranges if isinstance(one, Choice))

    @property
    def is_of_choices(self) -> bool:
        return all(isinstance(one, Choice) for one in self.ranges)

    def holds(self, parameters: Mapping[str, str]) -> bool:
        """Whether a trial of another study says something about this space."""
        return all(
            one.name in parameters and (isinstance(one, NumberRange) or parameters[one.name] in one.values)
            for one in self.ranges
        )


def parse_space(ranges: Mapping[str, Any], *, field: str) -> tuple[SearchSpace, list[FieldProblem]]:
    """``field``: where it stands in the request."""
    found, problems = list[Range](), list[FieldProblem]()
    for kind, is_integer in _NAMED.items():
        for index, one in enumerate(ranges.get(kind) or ()):
            try:
                found.append(_number_range(one, is_integer=is_integer))
            except ValueError as error:
                problems.append(FieldProblem(field=f"{field}.{kind}[{index}]", message=str(error)))
    for one in ranges.get("CategoricalParameterRanges") or ():
        found.append(Choice(name=one["Name"], values=tuple(dict.fromkeys(one["Values"]))))
    problems += _name_problems(found, field=field)
    return SearchSpace(ranges=tuple(found)), problems


def _name_problems(found: Sequence[Range], *, field: str) -> Iterator[FieldProblem]:
    names = [one.name for one in found]
    if not names:
        yield FieldProblem(field=field, message="has no range", hint="give at least one hyperparameter")
    for name in sorted({one for one in names if names.count(one) > 1}):
        yield FieldProblem(field=field, message=f"has two ranges of the name {name!r}")


def _number_range(one: Mapping[str, Any], *, is_integer: bool) -> NumberRange:
    """Raises ValueError."""
    name = one["Name"]
    low, high = (_number(one[key], f"{name}: {key}") for key in ("MinValue", "MaxValue"))
    if is_integer and not (low.is_integer() and high.is_integer()):
        raise ValueError(f"{name}: {one['MinValue']} to {one['MaxValue']} are not integers")
    if low > high:
        raise ValueError(f"{name}: MinValue {one['MinValue']} is above MaxValue {one['MaxValue']}")
    scaling = _scaling(one.get("ScalingType") or "Auto", low, high)
    if scaling is Scaling.LOGARITHMIC and low <= 0:
        raise ValueError(f"{name}: Logarithmic needs a MinValue above 0")
    if scaling is Scaling.REVERSE_LOGARITHMIC and (is_integer or low < 0 or high >= 1):
        raise ValueError(f"{name}: ReverseLogarithmic needs a continuous range within 0 and 1, without 1")
    return NumberRange(name=name, low=low, high=high, is_integer=is_integer, scaling=scaling)


def _scaling(asked: str, low: float, high: float) -> Scaling:
    if asked == "Auto":
        return Scaling.LOGARITHMIC if 0 < low * WIDE <= high else Scaling.LINEAR
    return Scaling(asked)


def _number(text: str, what: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{what} {text!r} is not a number")
    return found
