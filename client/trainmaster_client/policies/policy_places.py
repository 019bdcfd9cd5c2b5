"""Finds a policy's field in its author's file: the line, and the name of its pool or team."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml
from trainmaster.core.policy.findings import Location

from trainmaster_client.errors.problems import FieldProblem, Problem
from trainmaster_client.files.yaml_documents import StrictLoader

_ITEM = re.compile(r"(?:pools|teams)\[([0-9]+)\]")


class PolicyPlaces:
    """Adds lines and names to the paths that the API answers with.

    Args:
        text: What the document was read from, so it is valid and within the bounds that are read.
        document: What was read from it.
    """

    def __init__(self, text: bytes, document: Mapping[str, Any]) -> None:
        root = yaml.compose(_without_tabs(text), Loader=StrictLoader)
        self._lines = {} if root is None else dict(_lines(root, Location()))
        self._document = document

    def of(self, field: str) -> str:
        """Write ``pools[17].capcity (p5, line 88)``; what is missing has the line of what lacks it."""
        known = [field[:end] for end in _ends(field) if field[:end] in self._lines]
        name = self._name(field)
        parts = [name] if name else []
        if known:
            parts.append(f"line {self._lines[known[0]]}")
        return f"{field} ({', '.join(parts)})" if field and parts else field

    def problem(self, problem: Problem) -> Problem:
        return replace(problem, errors=tuple(self.field_problem(error) for error in problem.errors))

    def field_problem(self, problem: FieldProblem) -> FieldProblem:
        return replace(problem, field=self.of(problem.field))

    def _name(self, field: str) -> str:
        match = _ITEM.match(field)
        if match is None:
            return ""
        items = self._document.get(field.partition("[")[0])
        index = int(match[1])
        item = items[index] if isinstance(items, list) and index < len(items) else None
        name = item.get("name") if isinstance(item, Mapping) else None
        return name if isinstance(name, str) and len(name) <= 63 else ""  # noqa: PLR2004  the longest name


def _ends(field: str) -> Iterator[int]:
    """Yield where the path of a field ends, then where each path around it does."""
    yield len(field)
    yield from (index for index in range(len(field) - 1, 0, -1) if field[index] in ".[")


def _without_tabs(text: bytes) -> bytes:
    return text.replace(b"\t", b" ") if text.lstrip().startswith(b"{") else text


def _lines(node: yaml.Node, at: Location) -> Iterator[tuple[str, int]]:
    """Yield each path of a document, written as the API writes it, with its line, from 1."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                here = at.below(key_node.value)
                yield here.path, key_node.start_mark.line + 1
                yield from _lines(value_node, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            here = at.item(index)
            yield here.path, element.start_mark.line + 1
            yield from _lines(element, here)
