"""Metrics that a training program prints, found by the MetricDefinitions of its job.

Source: SageMaker Developer Guide, "Define Training Metrics": each definition is searched in the lines of
stdout and stderr, its first group is the value. Here they are Python's regular expressions.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    regexes: tuple[tuple[str, re.Pattern[str]], ...]
    """By the name of the metric; those without a group or that are no regular expressions find nothing."""

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Self:
        """Of a CreateTrainingJob request."""
        given = request["AlgorithmSpecification"].get("MetricDefinitions", ())
        compiled = ((one["Name"], _compiled(one["Regex"])) for one in given)
        return cls(regexes=tuple((name, regex) for name, regex in compiled if regex is not None))

    def values_in(self, line: str) -> Iterator[tuple[str, float]]:
        """Each metric at most once; what is no finite number is none."""
        for name, regex in self.regexes:
            found = regex.search(line)
            value = None if found is None else _number(found[1])
            if value is not None:
                yield name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """One value of a metric."""

    name: str
    value: float
    at: datetime


def _compiled(regex: str) -> re.Pattern[str] | None:
    try:
        compiled = re.compile(regex)
    except re.error:
        return None
    return compiled if compiled.groups else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
