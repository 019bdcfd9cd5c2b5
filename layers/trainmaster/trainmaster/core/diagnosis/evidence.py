"""One line of a log, made fit to be looked at and shown: cut, printable, without secrets."""

import re

from trainmaster.core.request.secret_detectors import SECRETS

MAX_EVIDENCE = 200
# An exception's name is at the head of a line or, behind what a launcher puts before it, near its end.
_HEAD = _TAIL = 1000
_BEFORE = 60
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_NAMED_SECRETS = re.compile(
    r"((?:secret|token|passw(?:or)?d|api[_-]?key|access[_-]?key|authorization|credential)[\w.-]{0,40}"
    r"[\"']{0,2}\s{0,4}[=:]\s{0,4}[\"']{0,2}(?:bearer\s)?)[^\s\"',;]{4,}",
    re.IGNORECASE,
)
# An AWS secret access key has 40 such characters; a git hash has no capitals.
_KEY = re.compile(
    r"(?<![\w/+])(?=[^\s]{0,39}[A-Z])(?=[^\s]{0,39}[a-z])(?=[^\s]{0,39}[0-9])[A-Za-z0-9/+]{40}(?![\w/+])"
)
_HIDDEN = "***"


def readable(line: str) -> str:
    """Return the head and tail of a line, in printable characters and without colours."""
    if len(line) > _HEAD + _TAIL:
        line = f"{line[:_HEAD]} ... {line[-_TAIL:]}"
    line = _COLOURS.sub("", line)
    return "".join(character if character.isprintable() else " " for character in line).strip()


def evidence_of(text: str, pattern: re.Pattern[str]) -> str:
    """Return the part of a readable line around the pattern, at most 200 characters.

    Secrets are hidden before it is cut, so that no part of one is left unrecognised.
    """
    hidden = without_secrets(text)
    match = pattern.search(hidden)
    begin = max(match.start() - _BEFORE, 0) if match and match.end() > MAX_EVIDENCE else 0
    return hidden[begin : begin + MAX_EVIDENCE].strip()


def without_secrets(text: str) -> str:
    """Replace what looks like a secret by ``***``: more people read a diagnosis than a log."""
    text = SECRETS.sub(_HIDDEN, text)
    text = _NAMED_SECRETS.sub(rf"\1{_HIDDEN}", text)
    return _KEY.sub(_HIDDEN, text)
