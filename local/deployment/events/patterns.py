"""EventBridge patterns (EventBridge User Guide, "Comparison operators"): which events a rule selects."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from local.deployment.deployment_errors import TemplateError

Value: TypeAlias = Any
"""A JSON value."""

_ABSENT = object()


def matches(pattern: Mapping[str, Value], event: Mapping[str, Value]) -> bool:
    """Answer whether the event has, for each key of the pattern, one of the values it lists."""
    return all(_matches_field(expected, event.get(key, _ABSENT)) for key, expected in pattern.items())


def check_pattern(where: str, pattern: Mapping[str, Value]) -> None:
    """Raise TemplateError for an operator that ``matches`` does not know."""
    for key, expected in pattern.items():
        if isinstance(expected, Mapping):
            check_pattern(f"{where}.{key}", expected)
        elif not isinstance(expected, list) or not expected:
            raise TemplateError(f"{where}.{key}", "a pattern lists values")
        else:
            _check_matchers(f"{where}.{key}", expected)


def _check_matchers(where: str, matchers: list[Value]) -> None:
    for matcher in matchers:
        if isinstance(matcher, Mapping) and (len(matcher) != 1 or not matcher.keys() <= _OPERATORS.keys()):
            raise TemplateError(where, f"the twin does not know pattern operator {', '.join(matcher)}")


def _matches_field(expected: Value, actual: Value) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and matches(expected, actual)
    candidates = actual if isinstance(actual, list) and actual else [actual]
    return any(_matches_value(matcher, candidate) for matcher in expected for candidate in candidates)


def _matches_value(matcher: Value, actual: Value) -> bool:
    if isinstance(matcher, Mapping):
        ((operator, argument),) = matcher.items()
        return _OPERATORS[operator](argument, actual)
    return type(matcher) is type(actual) and bool(matcher == actual)


def _exists(wanted: Value, actual: Value) -> bool:
    return bool(wanted) == (actual is not _ABSENT)


def _prefix(prefix: Value, actual: Value) -> bool:
    return isinstance(actual, str) and actual.startswith(prefix)


def _suffix(suffix: Value, actual: Value) -> bool:
    return isinstance(actual, str) and actual.endswith(suffix)


def _anything_but(excluded: Value, actual: Value) -> bool:
    if actual is _ABSENT:
        return False
    matchers = excluded if isinstance(excluded, list) else [excluded]
    return not any(_matches_value(matcher, actual) for matcher in matchers)


_OPERATORS: Mapping[str, Callable[[Value, Value], bool]] = {
    "exists": _exists,
    "prefix": _prefix,
    "suffix": _suffix,
    "anything-but": _anything_but,
}
