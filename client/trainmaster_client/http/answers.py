"""Answers to a call: the API's own, or a refusal by the gateway or another server; text made safe to show."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from trainmaster_client.errors.troubles import Trouble

ALLOWED_SKEW = timedelta(minutes=5)
"""IAM User Guide, "Troubleshoot SigV4": a request must arrive within five minutes of its time stamp."""
ERROR_TYPE_HEADER = "x-amzn-errortype"
VERSION_HEADER = "trainmaster-version"
PROBLEM_JSON = "application/problem+json"
LONGEST_TEXT = 2000
"""Characters of one text of an answer that are shown."""
_MOST_DIGITS = 12

_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60))
"""Name of each unit and its seconds."""
_EXPLICIT_DENY = "explicit deny"
"""The two denials have one type. IAM User Guide, "Troubleshoot access denied error messages", has the words;
should they change, the trouble is called the more frequent of the two."""

_BY_TYPE: Mapping[str, Trouble] = {
    "ExpiredTokenException": Trouble.EXPIRED_CREDENTIALS,
    "ForbiddenException": Trouble.WRONG_ENDPOINT,
    "IncompleteSignatureException": Trouble.WRONG_SIGNATURE,
    "InvalidClientTokenId": Trouble.UNKNOWN_KEY,
    "InvalidSignatureException": Trouble.WRONG_SIGNATURE,
    "MissingAuthenticationTokenException": Trouble.WRONG_STAGE,
    "SignatureDoesNotMatch": Trouble.WRONG_SIGNATURE,
    "UnrecognizedClientException": Trouble.UNKNOWN_KEY,
}
"""API Gateway Developer Guide, "Gateway response types"; IAM API reference, "Common Errors"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """Time that this machine's clock is ahead of the server's; negative if it is behind."""

    ahead: timedelta

    @property
    def is_allowed(self) -> bool:
        return abs(self.ahead) <= ALLOWED_SKEW

    def __str__(self) -> str:
        seconds = abs(self.ahead).total_seconds()
        size = next(
            (
                f"{seconds / unit_seconds:.0f} {unit}"
                for unit, unit_seconds in _UNITS
                if seconds >= 2 * unit_seconds
            ),
            f"{seconds:.0f} s",
        )
        return f"{size} {'ahead of' if self.ahead > timedelta() else 'behind'} the API's"


def skew_of(answer: Answer, *, now: datetime) -> Skew | None:
    """Return how far the clock is off; None if the answer has no date to compare with."""
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
        return Skew(ahead=now - theirs) if theirs.tzinfo else None
    except (ValueError, OverflowError):  # a date that is none, or outside of the calendar
        return None


def seconds_to_wait(answer: Answer) -> int | None:
    """Return the seconds of the answer's Retry-After; None without one, or if it is not in seconds."""
    text = answer.headers.get("retry-after", "").strip()
    if not text.isascii() or not text.isdecimal():
        return None
    return int(text[:_MOST_DIGITS])


def is_own(answer: Answer) -> bool:
    """Tell whether the API itself wrote the answer; older stacks name no version."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    return VERSION_HEADER in answer.headers or kind == PROBLEM_JSON


def trouble_of(answer: Answer, *, now: datetime) -> Trouble | None:
    """Return why the gateway refused, or what answers in its place; None for the API's or a good answer."""
    if is_own(answer):
        return None
    document = document_of(answer)
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Trouble.API_FAILED
    if document is None or answer.status in range(300, 400):
        return Trouble.NOT_THE_API
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return Trouble.TOO_MANY_REQUESTS
    return _forbidden(answer, now) if answer.status == HTTPStatus.FORBIDDEN else None


def document_of(answer: Answer) -> dict[str, object] | None:
    """Return the body's JSON object; None if it is none, or nested without end."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def kind_of(document: Mapping[str, object]) -> str:
    """Return the last word of a problem's type, for example ``repair-needed``; empty where it has none."""
    return shown(document.get("type")).rpartition(":")[2]


def _forbidden(answer: Answer, now: datetime) -> Trouble:
    kind = answer.headers.get(ERROR_TYPE_HEADER, "").partition(":")[0]
    if kind == "AccessDeniedException":
        return Trouble.DENIED if _EXPLICIT_DENY.encode() in answer.body else Trouble.NOT_A_CALLER
    trouble = _BY_TYPE.get(kind, Trouble.FORBIDDEN)
    if trouble is Trouble.WRONG_SIGNATURE:
        skew = skew_of(answer, now=now)
        return trouble if skew is None or skew.is_allowed else Trouble.CLOCK
    return trouble


def shown(value: object) -> str:
    """Return a text of an answer for one line: no control characters, and cut if very long."""
    text = printable(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}... ({len(text)} characters)"


def printable(value: object) -> str:
    """Return printable text, empty for None: escape sequences of a user's failure reason must not act."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
