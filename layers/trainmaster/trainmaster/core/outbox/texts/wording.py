"""Wording of notices: a message for each, others' texts made safe, instants as people say them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.outbox.messages import MessageKind, Notice, OutboxMessage

MAX_QUOTE = 500
"""Most characters that are kept of a text that somebody else wrote."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
LOSS_ADVICE: Mapping[Code, str] = MappingProxyType(
    {
        ReasonCode.LOSS_NOT_FINITE: (
            "Try a lower learning rate, clipped gradients or bf16, from a checkpoint before that step."
        ),
        ReasonCode.LOSS_DIVERGED: "Try a lower learning rate, from a checkpoint before the loss rose.",
        ReasonCode.LOSS_PLATEAU: "See whether it has learned what it can, or its learning rate is too low.",
    }
)
"""Advice by the breach of the rule on the loss."""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The sentences of a notice, as ``Notice`` has them."""

    what: str
    why: str = ""
    todo: str = ""
    undo: str = ""


def to_tell(notice: Notice, *, cause: str, at: datetime) -> OutboxMessage:
    """Return the message of a notice; its id is made of the cause, so the same cause is reported once.

    Args:
        notice: The notice.
        cause: Text that names what caused it, such as a version of a job.
        at: When the message is left.
    """
    slug = notice.kind.lower().replace(" ", "-")
    return OutboxMessage(id=f"{cause}#{slug}", kind=MessageKind.TELL, at=at, notice=notice)


def quoted(text: str) -> str:
    """Return a text of somebody else in one line: without control or direction-changing characters, cut."""
    plain = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return plain if len(plain) <= MAX_QUOTE else f"{plain[: MAX_QUOTE - 3]}..."


def instant(at: datetime) -> str:
    """Render an instant like ``2026-11-02 12:00 UTC``."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def span(time: timedelta) -> str:
    """Render a duration like ``2 h 5 min``; one shorter than a minute is ``less than a minute``."""
    if time < _MINUTE:
        return "less than a minute"
    hours, minutes = divmod(time // _MINUTE, 60)
    return " ".join(f"{count} {unit}" for count, unit in ((hours, "h"), (minutes, "min")) if count)


def iso(at: datetime) -> str:
    """Render an instant for programs: ISO 8601, UTC, milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
