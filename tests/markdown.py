"""The documents as their tests read them: blocks of code, tables, links, headings, words in code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str


def documents() -> list[Path]:
    """Everything that people read, from the root."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def text_of(name: str) -> str:
    """A document by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> Iterator[Block]:
    for language, body in _FENCE.findall(text):
        if language in languages:
            yield Block(language, body)


def without_blocks(text: str) -> str:
    return _FENCE.sub("", text)


def codes(text: str) -> list[str]:
    """What stands between backticks on a line."""
    return _CODE.findall(text)


def links(text: str) -> list[str]:
    """Where the links of a text lead."""
    return _LINK.findall(without_blocks(text))


def anchors(text: str) -> set[str]:
    """The headings, as links name them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table(text: str, *header: str) -> list[list[str]]:
    """The cells of the rows below this header; raises when there is no such table or no row in it."""
    head = f"| {' | '.join(header)} |\n".replace("|  |", "| |")
    assert text.count(head) == 1, f"{text.count(head)} tables begin with {head!r}"
    rows = list(takewhile(bool, text.partition(head)[2].splitlines()[1:]))
    assert rows, header
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
