"""Values of one metric in the lines of a log, also those that are not finite.

SageMaker keeps finite numbers only, and most definitions match nothing else (``loss: ([0-9.]+)``), so what
stands before the first group of a definition is looked for, and the number behind it is read here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.core.policy.patterns import BadPatternError, TextPattern, parse_pattern

MOST_CANDIDATES = 60
"""Lines that are searched at most, the newest first: other people's expressions cost time on each."""
_LONGEST_LINE = 500
_NUMBER = re.compile(
    r"(?:tensor\()?([+-]?(?:nan|inf(?:inity)?|(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:e[+-]?[0-9]{1,4})?))"
    r"(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_STEP = re.compile(r"(?<![A-Za-z])step['\"]?\s{0,4}[=: /]\s{0,4}([0-9]{1,15})(?![0-9.])", re.IGNORECASE)
_LAZY = re.compile(r"(?<!\\)([*+?}])\?")
# One part of an expression: an escaped character, a class, what opens a group, or one character.
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:)?|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    value: float
    step: int | None = None
    """Step that the same line names; None: it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """Finds a metric in a line."""

    before: TextPattern
    """Pattern of the text directly before the number."""
    is_at_start: bool
    """Whether it has to begin where the line does."""

    def value_in(self, line: str) -> MetricValue | None:
        """Return the first number behind the text that introduces it; None: the line has none."""
        text = line[:_LONGEST_LINE]
        starts = (0,) if self.is_at_start else range(len(text) + 1)
        numbers = (_NUMBER.match(text, end) for end in self.before.ends_in(text, starts))
        number = next((match for match in numbers if match), None)
        if number is None:
            return None
        step = _STEP.search(text)
        return MetricValue(value=float(number[1]), step=int(step[1]) if step else None)

    def newest(self, lines: Iterable[str], *, most: int) -> tuple[MetricValue, ...]:
        """Return the newest values in lines that are the oldest first; so are the values.

        Args:
            lines: Lines of a log.
            most: Number of values wanted.
        """
        values: list[MetricValue] = []
        for line in list(lines)[: -MOST_CANDIDATES - 1 : -1]:
            value = self.value_in(line)
            if value is not None:
                values.append(value)
            if len(values) == most:
                break
        return tuple(reversed(values))


def metric_line(expression: str) -> MetricLine | None:
    r"""Read the regular expression of a metric definition.

    None: it has no group, or what stands before that needs more than ``patterns`` offers (``\b``,
    look-arounds, back references), which could take unbounded time.
    """
    before = _before_first_group(expression)
    if before is None:
        return None
    is_at_start = before.startswith("^")
    try:
        pattern = parse_pattern(_LAZY.sub(r"\1", before))
    except BadPatternError:
        return None
    return MetricLine(before=pattern, is_at_start=is_at_start)


def metric_names(request: Mapping[str, Any]) -> tuple[str, ...]:
    """List the metrics that a request defines, in its order."""
    return tuple(str(entry.get("Name", "")) for entry in _definitions(request))


def metric_definition(request: Mapping[str, Any], name: str) -> MetricLine | None:
    """Return how a metric is found in a line; None: the request does not define it, or it cannot be read."""
    expressions = (entry.get("Regex", "") for entry in _definitions(request) if entry.get("Name") == name)
    return next((metric_line(str(expression)) for expression in expressions), None)


def _definitions(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    algorithm = request.get("AlgorithmSpecification")
    given = algorithm.get("MetricDefinitions") if isinstance(algorithm, Mapping) else None
    return [entry for entry in given or () if isinstance(entry, Mapping)]


def _before_first_group(expression: str) -> str | None:
    """Return the text before the first capturing group; None: there is none, or it is in one of branches."""
    at = depth = 0
    while (match := _PART.match(expression, at)) is not None:
        part = match[0]
        if part == "(" and (expression[at : at + 3] == "(?P" or expression[at + 1 : at + 2] != "?"):
            return expression[:at] if depth == 0 else None
        if part == "(" or (part == "|" and depth == 0):
            return None
        depth += (part == "(?:") - (part == ")")
        at = match.end()
    return None
