"""Explains mistakes in YAML texts to their authors; tabs and indentation are read off the lines.

The parser names the token at which it gave up, which for a line that is not indented is the line after it.
"""

import re
from dataclasses import dataclass

import yaml

_LINE = re.compile(r" *(?:- +)*(?P<key>[A-Za-z0-9_][^:#]*?) *:(?:\s|$)")
"""A line of a block with a key; a dash of a list belongs to the indentation of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyLine:
    """A line with a key: where the key begins, which is what its neighbours align with."""

    number: int
    """Line number, counted from 1."""
    column: int
    key: str


def yaml_mistake(error: yaml.YAMLError, *, text: str | bytes, source: str) -> str:
    """Say in one sentence why a text could not be read, with the line where the parser knows it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"{source}: {error}."
    lines, mark = _lines(text), error.problem_mark
    number = mark.line + 1
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return f"{source}: line {number} begins with a tab: use spaces."
    if number <= len(lines) and (mistake := _indentation(lines[:number], error, mark.column)):
        return f"{source}, {mistake}."
    return f"{source}, line {number}: {error.problem}."


def _lines(text: str | bytes) -> list[str]:
    """Split a text in lines; bytes that are not UTF-8 are replaced, so that no line fails."""
    if isinstance(text, str):
        return text.splitlines()
    return text.decode("utf-8-sig", errors="replace").splitlines()


def _indentation(lines: list[str], error: yaml.YAMLError, column: int) -> str | None:
    """Find the line whose indentation does not fit; the parser gave up in the last line, at this column."""
    key_lines = [_key_line(line, number) for number, line in enumerate(lines, 1)]
    here = key_lines[-1] if key_lines else None
    before = [line for line in key_lines[:-1] if line]
    if here is None or not before or _is_in_flow(lines[:-1]):
        return None
    if isinstance(error, yaml.parser.ParserError):
        is_of_key = column <= here.column
    else:  # a key below a value is taken for more of that value, until its colon
        is_of_key = isinstance(error, yaml.scanner.ScannerError) and column == here.column + len(here.key)
    if not is_of_key:
        return None
    outside = _outside(before, here.column)
    if outside is not None:
        outdented, like = outside
        return f"line {outdented.number}: {outdented.key} is not indented: indent it like {like.key}"
    last = before[-1]
    if last.column < here.column:
        return (
            f"line {here.number}: {here.key} is indented deeper than {last.key}, which has a value: "
            "indent both alike"
        )
    return f"line {here.number}: {here.key} is indented like no line before it: indent it like its neighbours"


def _is_in_flow(lines: list[str]) -> bool:
    """Tell whether brackets are open, within which indentation means nothing; quotes are not looked at."""
    text = "\n".join(lines)
    return sum(map(text.count, "{[")) > sum(map(text.count, "}]"))


def _outside(before: list[_KeyLine], column: int) -> tuple[_KeyLine, _KeyLine] | None:
    """Find a line that left its mapping, and the one it belongs beside, if the mapping goes on after it."""
    outdented: _KeyLine | None = None
    for line in reversed(before):
        if line.column == column:
            return (outdented, line) if outdented else None
        if line.column < column:
            outdented = line
    return None


def _key_line(line: str, number: int) -> _KeyLine | None:
    match = _LINE.match(line)
    return _KeyLine(number=number, column=match.start("key"), key=match["key"]) if match else None
