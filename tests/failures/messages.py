"""A list of messages: JSON lines of what a failed job left behind, and the class that it is of."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.core.diagnosis import FailureEvidence
from trainmaster.core.jobs.failures import FailureClass

OWN = Path(__file__).with_name("messages.jsonl")


class BadMessageError(ValueError):
    """A line that is not a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    traces: FailureEvidence
    failure_class: FailureClass
    held_out: bool
    """No signature was written or changed for it; it has been scored again and again all the same."""
    collection: str | None
    """The list that it was collected with, after the signatures of their day were written."""
    first_sight: FailureClass | None
    """What it was taken for the first time that it was scored; never brought up to date."""
    seen: str | None
    """Where people can look it up."""


def read_messages(path: Path) -> tuple[Message, ...]:
    """Raises BadMessageError with the number of the line, OSError."""
    lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
    return tuple(_message(line, number) for number, line in enumerate(lines, start=1) if line.strip())


def _message(line: str, number: int) -> Message:
    try:
        fields: dict[str, Any] = json.loads(line)
        reason, exit_code, tail = fields.get("reason"), fields.get("exit_code"), fields.get("log_tail")
        return Message(
            traces=FailureEvidence(
                failure_reason=None if reason is None else str(reason),
                exit_code=None if exit_code is None else int(exit_code),
                log_tail=tuple(map(str, tail.splitlines() if isinstance(tail, str) else tail or ())),
            ),
            failure_class=FailureClass(fields["class"]),
            held_out=bool(fields.get("held_out")),
            collection=fields.get("list"),
            first_sight=FailureClass(fields["first_sight"]) if fields.get("first_sight") else None,
            seen=fields.get("seen"),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        wanted = '{"reason", "exit_code", "log_tail": text or list of lines, "class"}'
        raise BadMessageError(f"line {number} is not {wanted}: {error!r}") from error
