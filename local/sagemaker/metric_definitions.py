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
    """Expressions by metric name; one without a group, or that is no regular expression, matches nothing."""

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Self:
        """Read the definitions of a CreateTrainingJob request."""
        given = request["AlgorithmSpecification"].get("MetricDefinitions", ())
        compiled = ((definition["Name"], _compiled(definition["Regex"])) for definition in given)
        return cls(regexes=tuple((name, regex) for name, regex in compiled if regex is not None))

    def values_in(self, line: str) -> Iterator[tuple[str, float]]:
        """Yield each metric at most once, and only finite numbers."""
        for name, regex in self.regexes:
            match = regex.search(line)
            value = None if match is None else _number(match[1])
            if value is not None:
                yield name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A value of a metric."""

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
