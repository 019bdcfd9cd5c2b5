"""Checks a call against the service model: types, required members, lengths, ranges, patterns, enums.

botocore checks only a part of this on the caller's side, and a caller need not use botocore. Members that
the model does not know are dropped, as the service does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

from local.wire import AwsError

# Classes of Java's regular expressions that the model uses. All stand in brackets beside `_`, so \w, which
# is letters, digits and the underscore, says it for \p{L}.
_JAVA_CLASSES = {
    r"\p{L}": r"\w",
    r"\p{N}": r"\d",
    r"\p{Z}": r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    r"\p{Alnum}": "a-zA-Z0-9",
}

# Patterns that name no character. Whether the service takes a line end as any text is not documented; here it
# is, so that a container's command may have several lines.
_ANY_TEXT = frozenset({".*", ".+"})

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "structure": (Mapping,),
    "map": (Mapping,),
    "list": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float, datetime),
}


def input_shape(service: str, operation: str) -> StructureShape:
    """Return what an operation takes, by the service's model: that is read at its first call."""
    shape: StructureShape | None = _model(service).operation_model(operation).input_shape
    assert shape is not None, f"{operation} takes nothing"
    return shape


@cache
def _model(service: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"))


def checked(shape: StructureShape, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without what the model does not know.

    Raises:
        AwsError: SerializationException for a value of the wrong type, else ValidationException.
    """
    _check_type(shape, params, "")
    report = _Report()
    clean: dict[str, Any] = _structure(shape, params, "", report)
    report.raise_problems()
    return clean


@dataclass(slots=True)
class _Report:
    problems: list[str] = field(default_factory=list)

    def add(self, value: object, path: str, constraint: str) -> None:
        shown = "null" if value is None else f"'{value}'"
        self.problems.append(f"Value {shown} at '{path}' failed to satisfy constraint: {constraint}")

    def raise_problems(self) -> None:
        if self.problems:
            count = len(self.problems)
            noun = "error" if count == 1 else "errors"
            raise AwsError(
                "ValidationException",
                f"{count} validation {noun} detected: {'; '.join(self.problems)}",
            )


def _value(shape: Shape, value: Any, path: str, report: _Report) -> Any:  # noqa: ANN401  any JSON value
    _check_type(shape, value, path)
    match shape:
        case StructureShape():
            return _structure(shape, value, path, report)
        case MapShape():
            _check_size(shape, value, path, report)
            return _map(shape, value, path, report)
        case ListShape():
            _check_size(shape, value, path, report)
            return [
                _value(shape.member, element, f"{path}.{place}.member", report)
                for place, element in enumerate(value, start=1)
            ]
        case _:
            for constraint in _broken(shape, value):
                report.add(value, path, constraint)
            return _instant(value, path) if shape.type_name == "timestamp" else value


def _structure(shape: StructureShape, value: Mapping[str, Any], path: str, report: _Report) -> dict[str, Any]:
    for name in shape.required_members:
        if value.get(name) is None:
            report.add(None, _join(path, name), "Member must not be null")
    return {
        name: _value(member, value[name], _join(path, name), report)
        for name, member in shape.members.items()
        if value.get(name) is not None
    }


def _map(shape: MapShape, value: Mapping[str, Any], path: str, report: _Report) -> dict[str, Any]:
    for kind, member, parts in (("keys", shape.key, value.keys()), ("value", shape.value, value.values())):
        for part in parts:
            _check_type(member, part, path)
        if any(_broken(member, part) for part in parts):
            constraints = ", ".join(_constraints(member))
            report.add(dict(value), path, f"Map {kind} must satisfy constraint: [{constraints}]")
    return dict(value)


def _check_type(shape: Shape, value: object, path: str) -> None:
    allowed = _PYTHON_TYPES[shape.type_name]
    is_unmanaged_bool = isinstance(value, bool) and bool not in allowed
    if is_unmanaged_bool or not isinstance(value, allowed):
        raise AwsError(
            "SerializationException",
            f"{type(value).__name__} value at '{path}' can not be converted to {shape.type_name}",
        )


def _check_size(shape: Shape, value: Mapping[str, Any] | list[Any], path: str, report: _Report) -> None:
    for constraint in _broken_bounds(shape, len(value), "length"):
        report.add(value, path, constraint)


def _broken(shape: Shape, value: Any) -> list[str]:  # noqa: ANN401  any JSON value
    """Return the constraints of a scalar's shape that the value does not meet."""
    if shape.type_name in {"integer", "long", "float", "double"}:
        return _broken_bounds(shape, value, "value")
    if shape.type_name != "string":
        return []
    broken = _broken_bounds(shape, len(value), "length")
    if (allowed := shape.metadata.get("enum")) and value not in allowed:
        broken.append(f"Member must satisfy enum value set: [{', '.join(allowed)}]")
    if (pattern := shape.metadata.get("pattern")) and not _compiled(pattern).fullmatch(value):
        broken.append(f"Member must satisfy regular expression pattern: {pattern}")
    return broken


def _constraints(shape: Shape) -> Iterator[str]:
    """Yield all constraints of a text in a map; the service lists them all if one is not met."""
    if "max" in shape.metadata:
        yield f"Member must have length less than or equal to {shape.metadata['max']}"
    if "min" in shape.metadata:
        yield f"Member must have length greater than or equal to {shape.metadata['min']}"
    if "pattern" in shape.metadata:
        yield f"Member must satisfy regular expression pattern: {shape.metadata['pattern']}"


def _broken_bounds(shape: Shape, size: float, what: str) -> list[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    broken = []
    if most is not None and size > most:
        broken.append(f"Member must have {what} less than or equal to {most}")
    if least is not None and size < least:
        broken.append(f"Member must have {what} greater than or equal to {least}")
    return broken


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    for java, python in _JAVA_CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern, re.DOTALL if pattern in _ANY_TEXT else 0)


def _instant(value: float | datetime, path: str) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise AwsError("SerializationException", f"value at '{path}' is no timestamp") from error


def _join(path: str, name: str) -> str:
    """Join a path and a name; the service names members in lower camel case."""
    name = name[0].lower() + name[1:]
    return f"{path}.{name}" if path else name
