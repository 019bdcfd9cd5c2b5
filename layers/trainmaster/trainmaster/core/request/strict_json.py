"""A request body read as JSON, with nothing of what lenient parsers let through.

Python's own parser keeps the last of two equal keys, takes NaN and 1e999, raises RecursionError on deep
nesting and ValueError on very long integers: here each of them is an error that names the field.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from trainmaster.core.errors import FieldError, InvalidRequestError, PayloadTooLargeError, invalid, quoted
from trainmaster.core.field_paths import Path, path_text

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_BODY_BYTES = 256 * 1024
"""Most bytes of a body in UTF-8. They leave room for our own attributes in an item of 400 KB, DynamoDB's
limit."""
MAX_DEPTH = 32
"""Objects and lists inside each other. The deepest field of CreateTrainingJob is at 7."""
MAX_ERRORS = 50
"""Listed in one answer. Looking for more stops there, so a hostile body cannot buy CPU with mistakes."""

_MAX_INTEGER_CHARACTERS = 20  # a 64-bit integer with its sign; no field takes more
_WHITESPACE = " \t\n\r"  # what JSON calls whitespace; str.strip() alone would take more
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTENT_TYPE_HINT = "send the header Content-Type: application/json"
_OBJECT_HINT = "send one JSON object: the CreateTrainingJob request as boto3 takes it"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a body, and where."""

    path: Path
    message: str
    hint: str

    def as_field_error(self) -> FieldError:
        return FieldError(field=path_text(self.path), message=self.message, hint=self.hint)


def parse_object(body: str | None, *, base64: bool, content_type: str | None) -> JsonObject:
    """Read the JSON object in a request body.

    Args:
        body: As the gateway hands it over.
        base64: True when the gateway thought the body binary and encoded it.
        content_type: The header's value; None when the request had none.

    Raises:
        PayloadTooLargeError: The body is over ``MAX_BODY_BYTES``.
        InvalidRequestError: Anything else that is wrong, each with its field or ``body``.
    """
    text = body or ""
    _check_size(text)
    _check_content_type(content_type)
    if base64:
        raise _refused("is not text", "send uncompressed JSON in UTF-8")
    document = _decoded(text)
    if isinstance(document, dict):
        flaws = [flaw.as_field_error() for flaw in islice(_flaws(document, ()), MAX_ERRORS)]
        if flaws:
            raise invalid(flaws)
        return document
    if isinstance(document, _Flaw):
        raise _refused(document.message, document.hint)
    raise _refused(f"is {_KINDS[type(document)]}, not an object", _OBJECT_HINT)


def _check_size(text: str) -> None:
    # A text with more characters than the limit has more bytes, too: it need not be encoded to be refused.
    size = len(text) if len(text) > MAX_BODY_BYTES else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BODY_BYTES:
        error = FieldError(
            field="body",
            message=f"is larger than {MAX_BODY_BYTES} bytes",
            hint="put large inputs into S3 and pass their S3 URI",
        )
        raise PayloadTooLargeError(f"{error.field}: {error.message}", errors=(error,))


def _check_content_type(content_type: str | None) -> None:
    media_type, *parameters = (content_type or "").lower().split(";")
    if media_type.strip() != "application/json":
        problem = f"is {quoted(content_type)}" if content_type else "is missing"
        raise _refused(problem, _CONTENT_TYPE_HINT, field="Content-Type")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8"}:
            raise _refused("names a charset other than UTF-8", _CONTENT_TYPE_HINT, field="Content-Type")


def _decoded(text: str) -> Any:  # noqa: ANN401  whatever JSON holds, with a _Flaw where it is not acceptable
    start = len(text) - len(text.lstrip(_WHITESPACE))
    if start == len(text):
        raise _refused("is empty", _OBJECT_HINT)
    try:
        document, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _refused(f"is not JSON: {error.msg} at {where}", "check the body with a JSON parser") from error
    except RecursionError as error:
        raise _refused(_TOO_DEEP.message, _TOO_DEEP.hint) from error
    if text[end:].strip(_WHITESPACE):
        raise _refused(f"continues after the end of the JSON, at character {end}", _OBJECT_HINT)
    return document


def _refused(message: str, hint: str, *, field: str = "body") -> InvalidRequestError:
    return invalid([FieldError(field=field, message=message, hint=hint)])


@dataclass(frozen=True, slots=True)
class _Flaw:
    """Stands in the document where a value is not acceptable, until its path is known."""

    message: str
    hint: str


_TOO_DEEP = _Flaw(f"is nested more than {MAX_DEPTH} levels deep", "flatten it")
_REPEATED = _Flaw("is given more than once", "keep one of them")
_NOT_FINITE = _Flaw("is not a finite number", "JSON has no NaN and no infinity: give a finite number")
_TOO_LONG = _Flaw("is a number with too many digits", "no field takes more than 64 bits")
_HALF_CHARACTER = "contains half a character (a lone surrogate)"
_HALF_CHARACTER_HINT = "send text that UTF-8 can represent"
_KINDS = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean"} | {
    type(None): "null"
}


def _flaws(value: object, path: Path) -> Iterator[Mistake]:
    """Yield mistakes depth first, and lazily: those that MAX_ERRORS cuts off cost nothing."""
    if isinstance(value, _Flaw):
        yield Mistake(path, value.message, value.hint)
    elif isinstance(value, str):
        if _SURROGATE.search(value):
            yield Mistake(path, _HALF_CHARACTER, _HALF_CHARACTER_HINT)
    elif isinstance(value, dict | list):
        if len(path) < MAX_DEPTH:
            yield from _flaws_inside(value, path)
        else:
            yield Mistake(path, _TOO_DEEP.message, _TOO_DEEP.hint)


def _flaws_inside(value: dict[str, Any] | list[Any], path: Path) -> Iterator[Mistake]:
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _flaws(element, (*path, index))
        return
    for key, member in value.items():
        if _SURROGATE.search(key):
            yield Mistake((*path, key), f"has a name that {_HALF_CHARACTER}", _HALF_CHARACTER_HINT)
        yield from _flaws(member, (*path, key))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                members[key] = _REPEATED
            seen.add(key)
    return members


def _integer(text: str) -> int | _Flaw:
    return int(text) if len(text) <= _MAX_INTEGER_CHARACTERS else _TOO_LONG


def _real(text: str) -> float | _Flaw:
    number = float(text)
    return number if math.isfinite(number) else _NOT_FINITE


def _constant(_: str) -> _Flaw:
    return _NOT_FINITE


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
)


def canonical(body: Mapping[str, Any]) -> bytes:
    """Encode the request so that the order of keys and tags makes no difference; adds nothing to it."""
    tags = sorted(body.get("Tags", []), key=lambda tag: (tag["Key"], tag["Value"]))
    ordered = {**body, "Tags": tags} if "Tags" in body else body
    text = json.dumps(ordered, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def body_hash(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical body, in hex: equal for two submissions of the same request."""
    return hashlib.sha256(canonical(body)).hexdigest()
