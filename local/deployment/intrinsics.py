"""Resolves CloudFormation's intrinsic functions into plain values; knows nothing of resources."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from local.deployment.deployment_errors import TemplateError

Node: TypeAlias = Any
"""A node of a template: any JSON value."""

_SUB_VARIABLE = re.compile(r"\$\{(!?)([^}]*)\}")
_NO_VALUE = object()


class Names(Protocol):
    """The names that ``Ref`` and ``Fn::GetAtt`` may use; raises TemplateError for any other."""

    def ref(self, name: str) -> Node:
        """Answer a parameter, a pseudo parameter or the physical id of a resource."""
        ...

    def attribute(self, name: str, attribute: str) -> str:
        """Answer an attribute of a resource."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Turns a node of the template into the value that CloudFormation would hand to a service."""

    names: Names
    conditions: Mapping[str, Node]
    mappings: Mapping[str, Node]

    def resolve(self, node: Node) -> Node:
        """Answer ``node`` without intrinsics; raises TemplateError for one that is not known."""
        value = self.value(node)
        return None if value is _NO_VALUE else value

    def condition(self, name: str) -> bool:
        """Answer whether the named condition of the template holds."""
        if name not in self.conditions:
            raise TemplateError(name, "no such condition")
        return self.truth(self.conditions[name])

    def value(self, node: Node) -> Node:
        """Resolve like ``resolve``, with a mark for AWS::NoValue, which the caller leaves out."""
        if isinstance(node, Mapping):
            return self._mapping(node)
        if isinstance(node, list):
            values = (self.value(child) for child in node)
            return [value for value in values if value is not _NO_VALUE]
        return node

    def truth(self, node: Node) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            raise TemplateError("Conditions", f"{value!r} is not a condition")
        return value

    def listed(self, node: Node, where: str) -> list[Node]:
        values = self.value(node)
        if not isinstance(values, list):
            raise TemplateError(where, "needs a list")
        return values

    def _mapping(self, node: Mapping[str, Node]) -> Node:
        if len(node) == 1:
            ((key, argument),) = node.items()
            if function := _FUNCTIONS.get(key):
                return function(self, argument)
            if key.startswith("Fn::"):
                raise TemplateError(key, "the twin does not know this intrinsic function")
        values = {key: self.value(child) for key, child in node.items()}
        return {key: value for key, value in values.items() if value is not _NO_VALUE}


def _ref(resolver: Resolver, argument: Node) -> Node:
    return _NO_VALUE if argument == "AWS::NoValue" else resolver.names.ref(argument)


def _get_att(resolver: Resolver, argument: Node) -> str:
    name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
    return resolver.names.attribute(name, resolver.value(attribute))


def _sub(resolver: Resolver, argument: Node) -> str:
    text, own = (argument, {}) if isinstance(argument, str) else argument
    variables = {name: resolver.value(value) for name, value in own.items()}

    def replacement(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return "${" + name + "}"
        if name in variables:
            return _text(variables[name])
        return _get_att(resolver, name) if "." in name else _text(resolver.names.ref(name))

    return _SUB_VARIABLE.sub(replacement, text)


def _join(resolver: Resolver, argument: Node) -> str:
    delimiter, values = argument
    return str(delimiter).join(_text(value) for value in resolver.listed(values, "Fn::Join"))


def _split(resolver: Resolver, argument: Node) -> list[str]:
    delimiter, text = argument
    return _text(resolver.value(text)).split(delimiter)


def _select(resolver: Resolver, argument: Node) -> Node:
    index, values = argument
    items = resolver.listed(values, "Fn::Select")
    position = int(resolver.value(index))
    if not 0 <= position < len(items):
        raise TemplateError("Fn::Select", f"index {position} is outside a list of {len(items)}")
    return items[position]


def _if(resolver: Resolver, argument: Node) -> Node:
    name, then, otherwise = argument
    return resolver.value(then if resolver.condition(name) else otherwise)


def _equals(resolver: Resolver, argument: Node) -> bool:
    left, right = (resolver.value(side) for side in argument)
    return bool(_comparable(left) == _comparable(right))


def _comparable(value: Node) -> Node:
    """Return the value as CloudFormation compares it: texts, whatever the type of a parameter."""
    return value if isinstance(value, list | dict) else _text(value)


def _and(resolver: Resolver, argument: Node) -> bool:
    return all(resolver.truth(condition) for condition in argument)


def _or(resolver: Resolver, argument: Node) -> bool:
    return any(resolver.truth(condition) for condition in argument)


def _not(resolver: Resolver, argument: Node) -> bool:
    return not resolver.truth(argument[0])


def _condition(resolver: Resolver, argument: Node) -> Node:
    # The same key holds the conditions of an IAM statement, and there it is a mapping.
    return (
        resolver.condition(argument) if isinstance(argument, str) else {"Condition": resolver.value(argument)}
    )


def _find_in_map(resolver: Resolver, argument: Node) -> Node:
    path = [resolver.value(key) for key in argument]
    value: Node = resolver.mappings
    for step in path:
        if step not in value:
            raise TemplateError("Fn::FindInMap", f"nothing at {'.'.join(map(str, path))}")
        value = value[step]
    return value


def _text(value: Node) -> str:
    if isinstance(value, list | dict):
        raise TemplateError("Fn::Sub or Fn::Join", "a list or map where text is needed")
    return str(value).lower() if isinstance(value, bool) else str(value)


_FUNCTIONS: Mapping[str, Callable[[Resolver, Node], Node]] = {
    "Ref": _ref,
    "Condition": _condition,
    "Fn::GetAtt": _get_att,
    "Fn::Sub": _sub,
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::If": _if,
    "Fn::Equals": _equals,
    "Fn::And": _and,
    "Fn::Or": _or,
    "Fn::Not": _not,
    "Fn::FindInMap": _find_in_map,
}
