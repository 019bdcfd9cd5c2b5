"""YAML that a user hands over, read with bounds: a few hundred bytes of it can ask for gigabytes.

An alias (``*name``) repeats what its anchor (``&name``) marks, and may stand within another anchor, so each
line can multiply what the line before it means ("billion laughs"). Here a document is measured from its
tokens, before anything of it is built. A few values that share an anchor, and merge keys, stay what they are.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import yaml

LARGEST_BYTES = 1024 * 1024
"""Longest text. The API takes 256 KiB; the longest policies that people wrote have about 30."""
MOST_REPEATED = 256 * 1024
"""Characters that all aliases of a text may stand for: as many as the API takes in one document."""
DEEPEST = 64
"""Levels of lists and maps. The API takes 32; the schema of a pod within a Kubernetes definition has 47."""
LONGEST_NUMBER = 100
"""Characters. Numbers of base 60 (``1:30:00``) cost the square of their length, and Python refuses to print
whole numbers of more than 4,300 digits."""

_FIRST_GROUP = re.compile(r"-?[1-9][0-9]{0,2}")
_GROUP = re.compile(r"[0-9]{3}(?:\.[0-9]+)?")
"""Three digits after a comma, as in 1,000 and 1,000,000.50."""
_NODE_CHARACTERS = 8
"""Characters that a value counts beside its text, so that a list of nothing is not free."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser is ten times as fast and part of every wheel of PyYAML; a build without it works as well."""
Loader: TypeAlias = Any
"""A class of PyYAML's safe loaders, in C or in Python."""


class StrictLoader(_Loader):  # type: ignore[misc]
    """Refuses keys that are written twice: YAML's parser lets the last one win, and half a policy is gone."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  PyYAML's
        _refuse_commas_in_numbers(node)
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # PyYAML refuses it below, in its own words
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is written twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Build a number that has not more digits than a number needs."""
        if len(node.value) > LONGEST_NUMBER:
            problem = f"a number of {len(node.value)} characters; at most {LONGEST_NUMBER} are read"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        is_whole = node.tag == "tag:yaml.org,2002:int"
        number: int | float = self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)
        return number


def _refuse_commas_in_numbers(node: yaml.MappingNode) -> None:
    """Refuse ``{usd: 1,000}``: YAML reads the comma as the end of the value, and 000 as another key."""
    groups: list[str] = []
    mark: Any = None
    for key_node, value_node in node.value if node.flow_style else ():
        key, value = (
            node.value if isinstance(node, yaml.ScalarNode) else None for node in (key_node, value_node)
        )
        if groups and value == "" and _GROUP.fullmatch(key or ""):
            groups.append(key or "")
            continue
        if len(groups) > 1:
            break
        groups, mark = ([value] if value and _FIRST_GROUP.fullmatch(value) else []), key_node.start_mark
    if len(groups) > 1:
        problem = f"write {''.join(groups)} without a comma"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


for _kind in ("int", "float"):
    StrictLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", StrictLoader.construct_number)


def read_yaml(text: str | bytes, *, loader: Loader = StrictLoader) -> Any:  # noqa: ANN401  any YAML
    """Read a text that holds one document, or none (None); raises yaml.YAMLError for all that is wrong."""
    documents = read_yaml_documents(text, loader=loader)
    if len(documents) > 1:
        raise yaml.YAMLError(f"it holds {len(documents)} documents (---); write one")
    return documents[0] if documents else None


def read_yaml_documents(
    text: str | bytes, *, loader: Loader = StrictLoader, largest: int = LARGEST_BYTES
) -> Sequence[Any]:
    """Read all documents of a text.

    Args:
        text: Bytes are UTF-8 or UTF-16, as YAML has it.
        loader: A safe loader; one of its own has tags of its own.
        largest: Bytes, or characters of a str, of the longest text that is read.

    Raises:
        yaml.YAMLError: The text is not YAML, or it is longer, deeper or repeats more than is read. A
            yaml.MarkedYAMLError among them knows the line.
    """
    if len(text) > largest:
        raise yaml.YAMLError(f"it has {len(text)} bytes; at most {largest} are read")
    try:
        _measure(text, loader)
        return list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError:
        raise
    except (ValueError, ArithmeticError, AttributeError, TypeError, LookupError, RecursionError) as error:
        # PyYAML lets through what Python says of a day 32 or of a tag that does not fit its value.
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def _measure(text: str | bytes, loader: Loader) -> None:
    """Raise yaml.MarkedYAMLError where a text is too deep or its aliases repeat too much."""
    measured = _Measured()
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
    for event in events:
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                measured.open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                measured.close()
            case yaml.ScalarEvent():
                measured.add(event.anchor, _NODE_CHARACTERS + len(event.value))
            case yaml.AliasEvent():
                measured.repeat(event)
            case _:  # where the text and its documents begin and end
                pass


class _Measured:
    """Counts the characters that each anchor stands for, with what its own aliases repeat."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._open: list[tuple[str | None, int]] = []  # anchor of each open list or map, and its size so far
        self._repeated = 0

    def open(self, event: yaml.CollectionStartEvent) -> None:
        self._open.append((event.anchor, _NODE_CHARACTERS))
        if event.anchor is not None:
            self._sizes.pop(event.anchor, None)  # an alias within its own anchor would have no end
        if len(self._open) > DEEPEST:
            raise _refused(event, f"lists and maps are nested more than {DEEPEST} levels deep")

    def close(self) -> None:
        self.add(*self._open.pop())

    def add(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._sizes[anchor] = size
        if self._open:
            outer, so_far = self._open[-1]
            self._open[-1] = outer, so_far + size

    def repeat(self, event: yaml.AliasEvent) -> None:
        size = self._sizes.get(event.anchor or "")
        if size is None:
            raise _refused(event, f"the alias *{event.anchor} has no anchor before it, or stands within it")
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            most = f"{MOST_REPEATED // 1024} KiB"
            raise _refused(event, f"aliases (*name) repeat more than {most} of values; use fewer")
        self.add(None, size)


def _refused(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # the C parser's marks are of another class with the same fields
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
