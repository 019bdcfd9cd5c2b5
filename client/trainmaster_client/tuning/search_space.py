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
"""Values of hyperparameters by name, in the form of a training job's HyperParameters."""

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
        """Return the value at this position, from 0 (the low end) to 1 (the high end), as text."""
        low, high = self._ends()
        value = self._unscaled(low + position * (high - low))
        if self.is_integer:
            return str(int(min(max(round(value), self.low), self.high)))
        return repr(min(max(value, self.low), self.high))

    def position(self, text: str) -> float:
        """Return where a value lies on the scale from 0 to 1; one that lies outside is at the nearer end."""
        low, high = self._ends()
        scaled = self._scaled(min(max(float(text), self.low), self.high))
        return 0.0 if high == low else min(max((scaled - low) / (high - low), 0.0), 1.0)

    def _ends(self) -> tuple[float, float]:
        """Return both ends on the scale. Each integer owns half the way to its neighbours, the ends too."""
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

    def _unscaled(self, scaled: float) -> float:
        match self.scaling:
            case Scaling.LINEAR:
                return scaled
            case Scaling.LOGARITHMIC:
                return math.exp(scaled)
            case Scaling.REVERSE_LOGARITHMIC:
                return 1 - math.exp(-scaled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    name: str
    values: tuple[str, ...]


Range: TypeAlias = NumberRange | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    ranges: tuple[Range, ...]

    def combinations(self) -> Iterator[Parameters]:
        """Yield every combination of the choices, the last hyperparameter changing first."""
        choices = [choice for choice in self.ranges if isinstance(choice, Choice)]
        for values in product(*(choice.values for choice in choices)):
            yield {choice.name: value for choice, value in zip(choices, values, strict=True)}

    @property
    def combination_count(self) -> int:
        return math.prod(len(choice.values) for choice in self.ranges if isinstance(choice, Choice))

    @property
    def is_of_choices(self) -> bool:
        return all(isinstance(axis, Choice) for axis in self.ranges)

    def holds(self, parameters: Mapping[str, str]) -> bool:
        """Tell whether a trial of another study, with these parameters, says something about this space."""
        return all(
            axis.name in parameters
            and (isinstance(axis, NumberRange) or parameters[axis.name] in axis.values)
            for axis in self.ranges
        )


def parse_space(ranges: Mapping[str, Any], *, field: str) -> tuple[SearchSpace, list[FieldProblem]]:
    """Read the ranges of a request, and list what is wrong with them.

    Args:
        ranges: A ParameterRanges object of SageMaker.
        field: The path of that object in the request, which the problems name.
    """
    parsed, problems = list[Range](), list[FieldProblem]()
    for kind, is_integer in _NAMED.items():
        for index, definition in enumerate(ranges.get(kind) or ()):
            try:
                parsed.append(_number_range(definition, is_integer=is_integer))
            except ValueError as error:
                problems.append(FieldProblem(field=f"{field}.{kind}[{index}]", message=str(error)))
    for definition in ranges.get("CategoricalParameterRanges") or ():
        parsed.append(Choice(name=definition["Name"], values=tuple(dict.fromkeys(definition["Values"]))))
    problems += _name_problems(parsed, field=field)
    return SearchSpace(ranges=tuple(parsed)), problems


def _name_problems(ranges: Sequence[Range], *, field: str) -> Iterator[FieldProblem]:
    names = [axis.name for axis in ranges]
    if not names:
        yield FieldProblem(field=field, message="has no range", hint="give at least one hyperparameter")
    for name in sorted({repeated for repeated in names if names.count(repeated) > 1}):
        yield FieldProblem(field=field, message=f"has two ranges of the name {name!r}")


def _number_range(definition: Mapping[str, Any], *, is_integer: bool) -> NumberRange:
    """Raises ValueError that says what is wrong with the range."""
    name = definition["Name"]
    low, high = (_number(definition[key], f"{name}: {key}") for key in ("MinValue", "MaxValue"))
    if is_integer and not (low.is_integer() and high.is_integer()):
        raise ValueError(f"{name}: {definition['MinValue']} to {definition['MaxValue']} are not integers")
    if low > high:
        raise ValueError(
            f"{name}: MinValue {definition['MinValue']} is above MaxValue {definition['MaxValue']}"
        )
    scaling = _scaling(definition.get("ScalingType") or "Auto", low, high)
    if scaling is Scaling.LOGARITHMIC and low <= 0:
        raise ValueError(f"{name}: Logarithmic needs a MinValue above 0")
    if scaling is Scaling.REVERSE_LOGARITHMIC and (is_integer or low < 0 or high >= 1):
        raise ValueError(f"{name}: ReverseLogarithmic needs a continuous range within 0 and 1, without 1")
    return NumberRange(name=name, low=low, high=high, is_integer=is_integer, scaling=scaling)


def _scaling(scaling_type: str, low: float, high: float) -> Scaling:
    if scaling_type == "Auto":
        return Scaling.LOGARITHMIC if 0 < low * WIDE <= high else Scaling.LINEAR
    return Scaling(scaling_type)


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} {text!r} is not a number")
    return number
