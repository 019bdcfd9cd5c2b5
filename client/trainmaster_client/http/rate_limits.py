"""A call that the API refused for now: how long it asks to wait, and the line that says so once a process."""

import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import TypeAlias

from trainmaster_client.http.answers import Answer, document_of, seconds_to_wait, shown

LONGEST_WAIT_SECONDS = 60
"""A limit counts by the minute. What asks for more is reported to the user."""
MOST_WAITS = 10
"""Waits of one change, if other callers use up each minute's limit."""
MOST_WAITS_OF_A_READ = 2

_NOT_BY_THE_CLOCK = frozenset({"max_waiting"})
"""Limits, by the rule that the API names, which no minute lifts: jobs must start or be cancelled."""

Say: TypeAlias = Callable[[str], None]


def limit_passes_in(answer: Answer) -> int | None:
    """Return seconds until the API takes the call; None if waiting does not help, or takes too long."""
    if answer.status != HTTPStatus.TOO_MANY_REQUESTS or _NOT_BY_THE_CLOCK & set(_rules(answer)):
        return None
    seconds = seconds_to_wait(answer)
    return None if seconds is None or seconds > LONGEST_WAIT_SECONDS else seconds


def wait_line(answer: Answer, seconds: int) -> str:
    detail = shown((document_of(answer) or {}).get("detail")).rstrip(".") or "too many requests"
    return f"trainmaster: {detail}; waiting {seconds} s, then trying again (said once)"


class SaidOnce:
    """Prints the first line that it is given to standard error, and no other. Threads may share it."""

    def __init__(self) -> None:
        self._has_said = False
        self._saying = threading.Lock()

    def __call__(self, line: str) -> None:
        with self._saying:
            is_first, self._has_said = not self._has_said, True
        if is_first and sys.stderr is not None:  # a program without a console has none
            print(line, file=sys.stderr, flush=True)


ONCE_A_PROCESS = SaidOnce()
"""Shared by all clients of a process: a loop may make one for each submission."""


def _rules(answer: Answer) -> Iterator[str]:
    errors = (document_of(answer) or {}).get("errors")
    for entry in errors if isinstance(errors, list) else ():
        if isinstance(entry, dict):
            yield str(entry.get("rule"))
