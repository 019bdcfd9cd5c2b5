"""Words that the glossary retired: where they still stand, outside of what the wire keeps.

The wire is what is stored or sent: rows, reason codes, notice kinds, alarm and metric names, logical ids of
the template, environment variables.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

LOOKED_AT = (".py", ".md")
HISTORY = ("docs/adr/", "CHANGELOG.md", "tests/")
"""Said as it was at its time; and tests, whose sentences and data are their own."""

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        "errand": r"(?i)errand",
        "doorbell": r"(?i)doorbell",
        "surroundings": r"(?i)\bsurroundings",
        "visit": r"\b[Vv]isits?\b",
        "stray": r"(?i)stray",
        "stretch": r"(?i)\bstretch(es)?\b",
        "wish": r"\b[Ww]ish\b",
        "taken_by": r"\btaken_by\b",
        "taken_until": r"\btaken_until\b",
        "survived": r"\bsurvived\b",
        "unguarded": r"\b(un)?guarded\b",
        "judging": r"\bJudge\b|\b[Jj]udging\b",
    }
)
KEPT_BY_THE_WIRE = re.compile(
    r"DoorbellQueue\w*|DoorbellDeadLetter\w*|TRAINMASTER_DOORBELL_URL|[\w$.{}-]*-?doorbell-[\w-]+"
    r"|\bDoorbell:|Sid: Doorbell"
    r"|ErrandsPending\w*|errands-pending|0018-errands-in-the-table|\"Doorbell\"|\"errand\""
    r"|stop-stray|0019-strays[\w-]+|\"STRAYS?\"|UnguardedJobs|[Jj]ob[ -][Uu]nguarded|`unguarded`"
    r"|\"(un)?guarded\"|unguarded-jobs"
    r"|\"taken_(by|until)\"|\"survived\"|\"stretch\"|RoundTheQueueWarning"
    r"|\[[^\]]*\]\(adr/[\w.-]+\)"  # the title of a decision, as it was taken
)


def retired_words(root: Path, tracked: Iterable[str]) -> dict[str, list[str]]:
    """``path:line`` of each, by word; every word is a key."""
    found: dict[str, list[str]] = {word: [] for word in RETIRED}
    patterns = {word: re.compile(pattern) for word, pattern in RETIRED.items()}
    for path in tracked:
        if not path.endswith(LOOKED_AT) or path.startswith(HISTORY):
            continue
        text = KEPT_BY_THE_WIRE.sub("", (root / path).read_text(encoding="utf-8"))
        for word, pattern in patterns.items():
            lines = (text.count("\n", 0, hit.start()) + 1 for hit in pattern.finditer(text))
            found[word] += [f"{path}:{line}" for line in lines]
    return found
