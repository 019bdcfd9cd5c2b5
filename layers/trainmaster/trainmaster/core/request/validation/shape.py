"""Check a body's shape against the model of CreateTrainingJob: names, types, bounds, patterns and enums."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice

from trainmaster.core.field_paths import Path
from trainmaster.core.request.request_shapes import ROOT, SHAPES, Shape
from trainmaster.core.request.strict_json import MAX_ERRORS, JsonObject, JsonValue, Mistake

_MAX_INTEGER = {"integer": 2**31 - 1, "long": 2**63 - 1}
# Tab and line ends are the business of the patterns: the model allows them in Environment values alone.
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_NAME = 100  # no field has a longer one; comparing a huge one with ours would only cost CPU
_ANY_LINE = "[^\\n"  # how the patterns begin that take whatever stands on one line

_HINTS: Mapping[str, str] = {
    "HyperParameterValue": 'give every hyperparameter as a string, e.g. "0.1" or "true"',
    "TrainingEnvironmentKey": "use letters, digits and _, and no digit first",
    "TrainingEnvironmentValue": 'give every environment value as a string, e.g. "1"',
    "TrainingInstanceType": "write it as SageMaker does, e.g. ml.g5.12xlarge",
    "TrainingJobName": "use 1 to 63 letters, digits and hyphens, with a letter or digit first and last",
    "TagList": 'write [{"Key": "...", "Value": "..."}]',
    "TagKey": "use letters, digits, spaces and _.:/=+-@",
    "TagValue": "use letters, digits, spaces and _.:/=+-@",
    "S3Uri": "write it as s3://bucket/prefix",
    "RoleArn": "give the role's full ARN: arn:aws:iam::111122223333:role/name",
}

_SIZE_HINTS: Mapping[str, str] = {
    "HyperParameterValue": "put long values into a file in S3",
    "TagList": "SageMaker takes 50 tags per job and trainmaster adds four of them",
    "TrainingJobName": _HINTS["TrainingJobName"],
}


def shape_mistakes(body: JsonValue) -> list[Mistake]:
    """Return every departure from the model, in the order of the body, up to MAX_ERRORS."""
    return list(islice(_check(ROOT, body, ()), MAX_ERRORS))


def _check(name: str, value: JsonValue, path: Path) -> Iterator[Mistake]:
    shape = SHAPES[name]
    match shape["type"], value:
        case "structure", dict():
            yield from _check_structure(shape, value, path)
        case "list", list():
            yield from _check_elements(name, value, path)
        case "map", dict():
            yield from _check_entries(name, value, path)
        case "string", str():
            yield from _check_text(name, value, path)
        case "integer" | "long", int() | float() if not isinstance(value, bool):
            yield from _check_number(shape, value, path)
        case "boolean", bool():
            pass
        case kind, _:
            hint = _HINTS.get(name, _KIND_HINTS[kind])
            yield Mistake(path, f"must be {_WANTED[kind]}, not {_kind(value)}", hint)


def _check_structure(shape: Shape, value: JsonObject, path: Path) -> Iterator[Mistake]:
    members = shape["members"]
    for name, member in value.items():
        if name in members:
            yield from _check(members[name], member, (*path, name))
        else:
            yield Mistake((*path, name), "is not a field of CreateTrainingJob", _known(name, members))
    for name in shape["required"]:
        if name not in value:
            yield Mistake((*path, name), "is required", _HINTS.get(members[name], "add it"))


def _known(name: str, members: Iterable[str]) -> str:
    """Hint at the field that the caller may have meant, else at those that there are."""
    by_lower_case = {member.lower(): member for member in members}
    if len(name) <= _LONGEST_NAME:
        near = get_close_matches(name.lower(), by_lower_case, n=1)
        if near:
            return f"did you mean {by_lower_case[near[0]]}?"
    return f"remove it; fields here: {', '.join(by_lower_case.values())}"


def _check_elements(name: str, value: list[JsonValue], path: Path) -> Iterator[Mistake]:
    yield from _check_size(name, len(value), "elements", path)
    for index, element in enumerate(value):
        yield from _check(SHAPES[name]["member"], element, (*path, index))


def _check_entries(name: str, value: JsonObject, path: Path) -> Iterator[Mistake]:
    shape = SHAPES[name]
    yield from _check_size(name, len(value), "entries", path)
    for key, member in value.items():
        for mistake in _check(shape["key"], key, (*path, key)):
            yield Mistake(mistake.path, f"has a name that {mistake.message}", mistake.hint)
        yield from _check(shape["value"], member, (*path, key))


def _check_text(name: str, value: str, path: Path) -> Iterator[Mistake]:
    shape = SHAPES[name]
    if _SURROGATE.search(value) or _CONTROL_CHARACTER.search(value):
        yield Mistake(path, "contains a control character or half a character", "remove it")
    elif "enum" in shape:
        if value not in shape["enum"]:
            yield Mistake(path, "is none of the allowed values", f"use one of {', '.join(shape['enum'])}")
    elif sizes := list(_check_size(name, len(value), "characters", path)):
        yield from sizes  # and no pattern on a text of any length
    elif "pattern" in shape and not _compiled(shape["pattern"]).fullmatch(value):
        yield _mismatch(name, path)


def _mismatch(name: str, path: Path) -> Mistake:
    pattern = SHAPES[name]["pattern"]
    if pattern.startswith(_ANY_LINE):
        return Mistake(path, "is not one line", "remove the line breaks")
    if name in _HINTS:
        return Mistake(path, "is not well formed", _HINTS[name])
    return Mistake(path, "is not well formed", f"it must match {pattern} as a whole")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _check_number(shape: Shape, value: float, path: Path) -> Iterator[Mistake]:
    """Take 86400.0, as spreadsheets and pandas write it, for the whole number that it is."""
    most = shape.get("max", _MAX_INTEGER[shape["type"]])
    least = shape.get("min", -most - 1)
    if isinstance(value, float) and not value.is_integer():
        yield Mistake(path, f"must be a whole number, not {value!r}", "round it")
    elif not least <= value <= most:
        shown = _shown(int(value))
        yield Mistake(path, f"must be {least} to {most}, not {shown}", "give a number in this range")


def _check_size(name: str, size: int, unit: str, path: Path) -> Iterator[Mistake]:
    shape = SHAPES[name]
    if "max" in shape and size > shape["max"]:
        hint = _SIZE_HINTS.get(name, "make it shorter")
        yield Mistake(path, f"has {size} {unit}, at most {shape['max']} are allowed", hint)
    elif size < shape.get("min", 0):
        hint = _SIZE_HINTS.get(name, "fill it in or leave the field out")
        yield Mistake(path, f"has {size} {unit}, at least {shape['min']} are needed", hint)


def _shown(number: int) -> str:
    """Show a number, which is harmless to repeat, unless Python would refuse to print it."""
    return str(number) if abs(number) <= _MAX_INTEGER["long"] else "a number that large"


_WANTED: Mapping[str, str] = {
    "structure": "an object",
    "list": "a list",
    "map": "an object",
    "string": "a string",
    "integer": "a whole number",
    "long": "a whole number",
    "boolean": "true or false",
}
_KIND_HINTS: Mapping[str, str] = {
    "structure": "write {...} with its fields",
    "list": "write [...], also for a single element",
    "map": "write {...} with names and values",
    "string": "put it in quotes",
    "integer": "write it without quotes and without a decimal point",
    "long": "write it without quotes and without a decimal point",
    "boolean": "write true or false without quotes",
}


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
