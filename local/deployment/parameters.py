"""Values of the stack's parameters, checked against their declarations as CloudFormation does."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from local.deployment.deployment_errors import ParameterError

_LIST_TYPES = ("CommaDelimitedList", "List<")
_KNOWN_TYPES = ("String", "Number", *_LIST_TYPES)


def parameter_values(
    declared: Mapping[str, Mapping[str, Any]], given: Mapping[str, str]
) -> dict[str, str | list[str]]:
    """Answer a value for each declared parameter.

    Raises:
        ParameterError: A given name is not declared, a value is missing or not allowed.
    """
    for name in given:
        if name not in declared:
            raise ParameterError(name, f"no such parameter; there are {', '.join(sorted(declared))}")
    return {name: _value(name, declaration, given.get(name)) for name, declaration in declared.items()}


def _value(name: str, declaration: Mapping[str, Any], given: str | None) -> str | list[str]:
    text = given if given is not None else declaration.get("Default")
    if text is None:
        raise ParameterError(name, "has no default and no value was given")
    kind = str(declaration["Type"])
    if not kind.startswith(_KNOWN_TYPES):
        raise ParameterError(name, f"the twin does not know type {kind}")
    if not kind.startswith(_LIST_TYPES):
        _check(name, declaration, str(text))
        return str(text)
    items = [element.strip() for element in str(text).split(",")] if str(text) else []
    for element in items:
        _check(name, declaration, element)
    return items


def _check(name: str, declaration: Mapping[str, Any], text: str) -> None:
    if declaration["Type"] == "Number" and not _is_number(text):
        raise ParameterError(name, f"{text!r} is not a number")
    for key, holds in _CONSTRAINTS.items():
        if key in declaration and not holds(text, declaration[key]):
            hint = declaration.get("ConstraintDescription", f"{key} is {declaration[key]}")
            raise ParameterError(name, f"{text!r} is not allowed: {hint}")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


_CONSTRAINTS: Mapping[str, Callable[[str, Any], bool]] = {
    "AllowedValues": lambda text, allowed: text in [str(value) for value in allowed],
    "AllowedPattern": lambda text, pattern: re.fullmatch(pattern, text) is not None,
    "MinLength": lambda text, least: len(text) >= int(least),
    "MaxLength": lambda text, most: len(text) <= int(most),
    "MinValue": lambda text, least: float(text) >= float(least),
    "MaxValue": lambda text, most: float(text) <= float(most),
}
