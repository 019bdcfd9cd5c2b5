r"""Patterns that a policy's author writes for texts of other people, matched in bounded time.

A subset of regular expressions: characters, ``.``, ``[...]``, ``\d \w \s``, groups, ``|``, and ``? * +
{n} {n,m}``. Python's own engine tries one way after another, of which ``(a+)+b`` has millions; here all
places where a part may end are followed at once, so the time grows with the text and not with the ways.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAX_PATTERN_CHARACTERS = 256
MAX_TEXT_CHARACTERS = 256
"""Most characters of a text that can match. Source: SageMaker API reference, Tag, Value."""
_MOST_REPEATS = MAX_TEXT_CHARACTERS
_MOST_NESTED = 4

_TOKEN = re.compile(
    r"""(?P<one>\\[dwsDWS] | \\[^A-Za-z0-9] | \[\^?(?:\\.|(?![-&|~]{2})[^\]\[\\])+\] | [^\\\[\](){}|?*+^$])
      | (?P<open>\((?:\?:)?(?!\?)) | (?P<close>\)) | (?P<or>\|)
      | (?P<times>[?*+] | \{[0-9]{1,3}(?:,[0-9]{0,3})?\})""",
    re.VERBOSE,
)


class BadPatternError(ValueError):
    """Raised for a text that is not a pattern of this kind; its message says why."""


@dataclass(frozen=True, slots=True)
class _One:
    """One character."""

    allowed: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Row:
    parts: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Either:
    branches: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Times:
    part: "_Node"
    least: int
    most: int


_Node: TypeAlias = _One | _Row | _Either | _Times


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern that a text matches as a whole, or not at all."""

    source: str
    _node: _Node

    def matches(self, text: str) -> bool:
        if len(text) > MAX_TEXT_CHARACTERS:
            return False
        return len(text) in _ends(self._node, text, frozenset({0}))

    def ends_in(self, text: str, starts: Iterable[int]) -> tuple[int, ...]:
        """Return, in order, the places of a text at which a part that matches ends.

        Args:
            text: A text of any length; the time grows with it.
            starts: Places at which such a part may begin.
        """
        return tuple(sorted(_ends(self._node, text, frozenset(starts))))


def parse_pattern(source: str) -> TextPattern:
    """Read a pattern; ``^`` in front and ``$`` behind may be left out.

    Raises:
        BadPatternError: The text is not a pattern of this kind.
    """
    if len(source) > MAX_PATTERN_CHARACTERS:
        raise BadPatternError(f"has more than {MAX_PATTERN_CHARACTERS} characters")
    tokens = list(_tokens(_without_anchors(source)))
    node = _either(tokens, depth=0)
    if tokens:
        raise BadPatternError("closes a group that was not opened")
    return TextPattern(source, node)


def _without_anchors(source: str) -> str:
    inner = source.removeprefix("^")
    escapes = len(inner) - len(inner.removesuffix("$").rstrip("\\")) - 1
    return inner[:-1] if inner.endswith("$") and escapes % 2 == 0 else inner


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise BadPatternError(f"has something that is not supported at character {at + 1}")
        yield match.lastgroup, match[0]
        at = match.end()


def _either(tokens: list[tuple[str, str]], *, depth: int) -> _Node:
    branches = [_row(tokens, depth=depth)]
    while tokens and tokens[0][0] == "or":
        tokens.pop(0)
        branches.append(_row(tokens, depth=depth))
    return branches[0] if len(branches) == 1 else _Either(tuple(branches))


def _row(tokens: list[tuple[str, str]], *, depth: int) -> _Node:
    parts: list[_Node] = []
    while tokens and tokens[0][0] not in {"or", "close"}:
        kind, text = tokens.pop(0)
        if kind == "times":
            raise BadPatternError(f"repeats nothing with {text}")
        part = _One(_character(text)) if kind == "one" else _group(tokens, depth=depth + 1)
        if tokens and tokens[0][0] == "times":
            part = _Times(part, *_bounds(tokens.pop(0)[1]))
        parts.append(part)
    return _Row(tuple(parts))


def _group(tokens: list[tuple[str, str]], *, depth: int) -> _Node:
    if depth > _MOST_NESTED:
        raise BadPatternError(f"has groups in more than {_MOST_NESTED} groups")
    node = _either(tokens, depth=depth)
    if not tokens:
        raise BadPatternError("opens a group that is not closed")
    tokens.pop(0)
    return node


def _character(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise BadPatternError(f"has characters that cannot be read: {error.msg}") from error


def _bounds(text: str) -> tuple[int, int]:
    if text in "?*+":
        return (1 if text == "+" else 0), (1 if text == "?" else _MOST_REPEATS)
    least, comma, most = text[1:-1].partition(",")
    low, high = int(least), int(most or _MOST_REPEATS) if comma else int(least)
    if not low <= high <= _MOST_REPEATS:
        raise BadPatternError(f"repeats {text} times; at most {_MOST_REPEATS}, the smaller number first")
    return low, high


def _ends(node: _Node, text: str, starts: frozenset[int]) -> frozenset[int]:
    """Return every place where the part may end when it begins at one of these."""
    match node:
        case _One(allowed):
            return frozenset(at + 1 for at in starts if at < len(text) and allowed.fullmatch(text[at]))
        case _Row(parts):
            for part in parts:
                starts = _ends(part, text, starts)
            return starts
        case _Either(branches):
            return frozenset().union(*(_ends(branch, text, starts) for branch in branches))
        case _Times():
            return _repeated(node, text, starts)


def _repeated(node: _Times, text: str, starts: frozenset[int]) -> frozenset[int]:
    """Return every place where a repeated part may end.

    A place that was reached before leads nowhere new, so at most each place of the text is followed.
    """
    for _ in range(node.least):
        starts = _ends(node.part, text, starts)
    reached = starts
    for _ in range(node.most - node.least):
        starts = _ends(node.part, text, starts) - reached
        if not starts:
            break
        reached |= starts
    return reached
