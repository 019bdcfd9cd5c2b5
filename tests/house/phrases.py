"""``python -m tests.house.phrases``: phrases that a native reader stumbles over, and what to write instead.

It reads what people read: documents, the unreleased part of the changelog, the texts of the dashboard, of the
policy and of the template, and of Python the strings and docstrings. Comments, decisions and history stay.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.house.tracked import ROOT, tracked

PRODUCT = ("layers/", "client/", "functions/", "local/", "demos/", "training/", "tools/", "benchmarks/")
WHOLE_TEXTS = (".md", ".js", ".html", ".yaml", ".yml")
LEFT_OUT = ("docs/adr/", "docs/examples/", "tests/")
"""Decisions speak as they were taken; examples and tests are programs of their own."""

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        r"\b(go|goes|went|gone|going) (round|around|past) the queue\b": "bypass the queue",
        r"\b(go|goes|going|went|gone) on (from|with)\b": "resume from, continue with",
        r"\b(goes|go|gets|getting|get) on (with|again|by itself)\b": "continue, make progress",
        r"\bhardly (getting|gets|get) on\b": "making little progress",
        r"\bthe own (team|job|account|role|pool|name)": "your own, its own",
        r"\b(is|are|was|were|be|been) told\b(?! apart)": "is reported, is notified, gets a notice",
        r"\bmend(s|ed|ing)?\b": "fix, repair",
        r"(?<!here\s)\bis no (state|time|month|type|pool|team|number|name|key|place|option|instant)\b": (
            "is not a valid ..., with an example"
        ),
        r"(?<!-)\bsince (\d+\s?(s|m|h|d|seconds|minutes|hours|days)\d*\w*\b)": "for, with a duration",
        r"\bfor so long\b|\bso long as\b(?! the)": "this long, as long as",
        r"\bso often\b|\bso many times\b|\bevery so many\b|\beach so many\b": "this many times",
        r"\bkept so long\b|\bso long ago\b": "kept this long, a duration ago",
        r"\bworth (another|a further) try\b": "retryable",
        r"\bleft alone until\b": "not preempted until",
        r"\bout of its turn\b": "holds the job",
        r"\bstands? where\b|\bstands? (there|in the (log|reason|file|policy|table))\b": "is in",
        r"\bNeeded (is|are)\b": "you need",
        r"\bby (it|them)self (again|tried)\b|\btried again by itself\b": "it retries automatically",
        r"\bits release:": "run:",
        r"\bwants to be\b": "must be",
        r"\bis wont to\b|\bworth while\b": "usually; worthwhile",
        r"\bhow (it|this|that|they) (is|are) called\b|\bwhat it is called like\b": "what it is called",
        r"\binforms? about\b": "reports",
        r"\bmake(s|d)? (a )?photo": "take a photo",
        r"\bthe first time that\b": "the first time",
        r"\bis to be (told|tidied|had|seen|found)\b|\bare to be (told|tidied|had|seen|found)\b": (
            "must be ..., is available, can be seen"
        ),
        r"\btill\b": "until",
        r"\bgood for nothing\b|\bfor nothing else\b": "only for this",
        r"\bhas to do with\b": "concerns",
        r"\bas well as possible\b|\bin so far\b": "as far as",
        r"\btaken for idle\b": "considered idle",
        r"\bdoes not (come|go) back\b": "is not requeued",
        r"\bto have it otherwise\b": "to change that",
        r"\bone's own\b": "your own",
        r"\bhas to hold\b": "must hold",
        r"\bis spoken of\b|\bspeaks for those\b": "represents",
        r"\bwrites? down\b|\bwritten down\b|\bnoted? down\b": "record",
        r"\banew\b": "again",
        r"\blately\b": "recently",
        r"\bsomewhat\b|\bby and by\b|\bnow and then\b": "from time to time",
        r"\bnevertheless\b|\ball the same\b": "anyway, still",
        r"\bdearest\b|\bdearer\b": "most expensive",
        r"\bnobody (else )?(can|could|may|knows|has|had|reads|sees|asked|looks|is)\b": (
            "the passive, or the actor"
        ),
    }
)
"""Patterns, and the better wording."""
IN_DOCUMENTS = frozenset({"the passive, or the actor"})
"""Better wordings that only documents are held to."""
EXCEPTIONS = frozenset({("CONTRIBUTING.md", 'instead of "is no time"')})
"""A path and a piece of the line where the phrase is right."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Finding:
    path: str
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase!r}: write {self.instead}"


def retired_phrases(root: Path, paths: Iterable[str]) -> list[Finding]:
    """Each in what people read of these files, by path and line."""
    return sorted(finding for path in paths for finding in _of_file(root, path))


def _of_file(root: Path, path: str) -> Iterator[Finding]:
    if path.startswith(LEFT_OUT) or not path.endswith((".py", *WHOLE_TEXTS)):
        return
    if path.endswith(".py") and not path.startswith(PRODUCT):
        return
    source = (root / path).read_text(encoding="utf-8")
    lines = source.splitlines()
    for start, text in _texts(path, source):
        for found in _ANY.finditer(text):
            line = start + text.count("\n", 0, found.start())
            if any(path == file and piece in lines[line - 1] for file, piece in EXCEPTIONS):
                continue
            phrase = " ".join(found[0].split())
            instead = _INSTEAD[int(str(found.lastgroup).removeprefix("p"))]
            if instead not in IN_DOCUMENTS or path.endswith(".md"):
                yield Finding(path=path, line=line, phrase=phrase, instead=instead)


def _texts(path: str, source: str) -> Iterator[tuple[int, str]]:
    """What people read of a file, each part with its first line."""
    if path == "CHANGELOG.md":
        head, mark, rest = source.partition("\n## [Unreleased]")
        unreleased = rest.partition("\n## [")[0]
        yield head.count("\n") + 1, mark + unreleased
    elif path.endswith(".py"):
        yield from _strings(ast.parse(source))
    else:
        yield 1, source


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def _any() -> re.Pattern[str]:
    """All patterns at once; a phrase may go over the end of a line."""
    loose = (pattern.replace(" ", r"\s+") for pattern in INSTEAD)
    return re.compile("|".join(f"(?P<p{number}>{one})" for number, one in enumerate(loose)))


_ANY, _INSTEAD = _any(), tuple(INSTEAD.values())


def main() -> int:
    found = retired_phrases(ROOT, tracked(ROOT))
    for one in found:
        print(one)
    if found:
        print(
            f"{len(found)} retired phrases; one that is right is listed in tests/house/phrases.py, EXCEPTIONS"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
