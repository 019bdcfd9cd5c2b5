"""Expressions: moto parses and evaluates them, we refuse what DynamoDB refuses and moto lets through."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from moto.dynamodb.comparisons import create_condition_expression_parser
from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing.ast_nodes import (
    ExpressionAttribute,
    UpdateExpressionAddAction,
    UpdateExpressionDeleteAction,
    UpdateExpressionRemoveAction,
    UpdateExpressionSetAction,
)
from moto.dynamodb.parsing.executors import UpdateExpressionExecutor
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords
from moto.dynamodb.parsing.validators import UpdateExpressionValidator

from local.engine.dynamodb.values import Wire, invalid

Params: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str | int, ...]

KINDS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_PLACEHOLDER = re.compile(r"[#:][A-Za-z0-9_]+")
_PATH_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_UPDATE_ACTIONS = [
    UpdateExpressionSetAction,
    UpdateExpressionAddAction,
    UpdateExpressionRemoveAction,
    UpdateExpressionDeleteAction,
]


def text_of(params: Params, kind: str) -> str | None:
    """Return the expression on one line (moto knows no line breaks); None if there is none."""
    if kind not in params:
        return None
    text = " ".join(params[kind].split())
    if not text:
        raise invalid(f"Invalid {kind}: The expression can not be empty;")
    return text


def check_placeholders(params: Params) -> None:
    """Check that used names and values are given, and given ones are used. Raises AwsError."""
    texts = {kind: params[kind] for kind in KINDS if kind in params}
    names, values = params.get("ExpressionAttributeNames"), params.get("ExpressionAttributeValues")
    for given, what in ((names, "Names"), (values, "Values")):
        if given is not None and not texts:
            raise invalid(f"ExpressionAttribute{what} can only be specified when using expressions")
        if given is not None and not given:
            raise invalid(f"ExpressionAttribute{what} must not be empty")
    used = {token: kind for kind, text in texts.items() for token in _PLACEHOLDER.findall(text)}
    for token, kind in used.items():
        _check_defined(kind, token, names or {}, values or {})
    _check_used("Names", names or {}, used)
    _check_used("Values", values or {}, used)


def _check_defined(kind: str, token: str, names: Params, values: Params) -> None:
    if token.startswith("#") and token not in names:
        raise invalid(
            f"Invalid {kind}: An expression attribute name used in the document path is not defined; "
            f"attribute name: {token}"
        )
    if token.startswith(":") and token not in values:
        raise invalid(
            f"Invalid {kind}: An expression attribute value used in expression is not defined; "
            f"attribute value: {token}"
        )


def _check_used(what: str, given: Params, used: Params) -> None:
    if unused := [token for token in given if token not in used]:
        listed = ", ".join(unused)
        raise invalid(
            f"Value provided in ExpressionAttribute{what} unused in expressions: keys: {{{listed}}}"
        )


class Condition:
    """A condition or filter, parsed; an absent one always holds."""

    def __init__(self, params: Params, kind: str) -> None:
        self._kind = kind
        self._parsed: Any = None
        if text := text_of(params, kind):
            names, values = params.get("ExpressionAttributeNames"), params.get("ExpressionAttributeValues")
            with _refusals(kind):
                self._parsed = create_condition_expression_parser(text, names or {}, values or {}).parse()

    def holds(self, item: Item | None) -> bool:
        if self._parsed is None:
            return True
        with _refusals(self._kind):
            return bool(self._parsed.expr(item))


class Update:
    """An update expression, parsed; an absent one changes nothing."""

    def __init__(self, params: Params) -> None:
        self._names = params.get("ExpressionAttributeNames") or {}
        self._values = params.get("ExpressionAttributeValues") or {}
        self._parsed: Any = None
        if text := text_of(params, "UpdateExpression"):
            with _refusals("UpdateExpression"):
                self._parsed = UpdateExpressionParser.make(text)

    def attributes(self) -> frozenset[str]:
        """Return the top-level attributes that the expression writes to."""
        if self._parsed is None:
            return frozenset()
        firsts = [action.children[0].children[0] for action in self._parsed.find_clauses(_UPDATE_ACTIONS)]
        return frozenset(
            first.get_attribute_name()
            if isinstance(first, ExpressionAttribute)
            else self._names[first.get_attribute_name_placeholder()]
            for first in firsts
        )

    def apply(self, item: Item, table: Table) -> None:
        """Change the item in place. Raises AwsError; the item may be half changed then."""
        if self._parsed is None:
            return
        with _refusals("UpdateExpression"):
            validated = UpdateExpressionValidator(
                self._parsed, self._names, self._values, item, table
            ).validate()
            validated.normalize()
            UpdateExpressionExecutor(validated, item, self._names).execute()


def projection(params: Params) -> tuple[Path, ...] | None:
    """Return the paths of a projection; None means everything."""
    if (text := text_of(params, "ProjectionExpression")) is None:
        return None
    names = params.get("ExpressionAttributeNames") or {}
    return tuple(_path(part.strip(), names) for part in text.split(","))


def _path(text: str, names: Params) -> Path:
    parts = [int(index) if index else name for name, index in _PATH_PART.findall(text)]
    for part in parts:
        if isinstance(part, str) and part.upper() in ReservedKeywords.get_reserved_keywords():
            raise invalid(
                "Invalid ProjectionExpression: Attribute name is a reserved keyword; "
                f"reserved keyword: {part}"
            )
    return tuple(names.get(part, part) if isinstance(part, str) else part for part in parts)


def project(item: Wire, paths: Sequence[Path] | None) -> Wire:
    """Return the part of an item that the paths name; paths that lead nowhere are left out."""
    if paths is None:
        return item
    projected: Wire = {}
    for path in paths:
        name, *rest = path
        if isinstance(name, str) and name in item:
            _take(item[name], rest, projected, name)
    return projected


def _take(value: Wire, rest: Sequence[str | int], into: Wire, name: str) -> None:
    """Copy what ``rest`` names inside ``value`` to ``into[name]``, keeping the maps and lists on the way."""
    if not rest:
        into[name] = value
        return
    step, *further = rest
    if isinstance(step, str) and step in value.get("M", {}):
        inner = into.setdefault(name, {"M": {}})["M"]
        _take(value["M"][step], further, inner, step)
    elif isinstance(step, int) and step < len(value.get("L", ())):
        holder: Wire = {}
        _take(value["L"][step], further, holder, "taken")
        if holder:
            into.setdefault(name, {"L": []})["L"].append(holder["taken"])


@contextmanager
def _refusals(kind: str) -> Iterator[None]:
    """Turn the errors of moto's parsers and evaluators into DynamoDB's words."""
    try:
        yield
    except MockValidationException as error:
        raise invalid(error.exception_msg) from error
    except TypeError as error:
        raise invalid(f"Invalid {kind}: Incorrect operand type: {error}") from error
    except (ValueError, KeyError, IndexError) as error:
        raise invalid(f"Invalid {kind}: Syntax error; {error}") from error
