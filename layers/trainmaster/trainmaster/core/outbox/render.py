"""Render a notice for programs (the detail of an event) and for people (a mail)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.core.outbox.messages import Notice, NoticeKind, OutboxMessage
from trainmaster.core.outbox.texts.wording import iso

VERSION = "1"
"""Version of the detail, as in docs/events.schema.json; a key that goes or changes its meaning raises it."""
MAILED = frozenset(
    {
        NoticeKind.JOB_STOPPED,
        NoticeKind.JOB_FAILED,
        NoticeKind.JOB_RETRIED,
        NoticeKind.JOB_IDLE,
        NoticeKind.JOB_REQUEUED,
        NoticeKind.JOB_UNDERUSED,
        NoticeKind.LOSS_WARNING,
        NoticeKind.JOB_UNGUARDED,
        NoticeKind.CHECKPOINT_OVERDUE,
        NoticeKind.MOVED_TO_ON_DEMAND,
        NoticeKind.STAYS_ON_SPOT,
        NoticeKind.UNMANAGED_JOB,
        NoticeKind.RULE_VIOLATED,
        NoticeKind.BUDGET_WARNING,
        NoticeKind.START_REFUSED,
        NoticeKind.PREEMPTION_FUTILE,
        NoticeKind.DEPENDENTS_ENDED,
        NoticeKind.ARRAY_ENDED,
        NoticeKind.ARRAY_HELD,
        NoticeKind.PLATFORM_WARNING,
    },
)
"""Kinds that are also mailed, as a reader may want to act. A busy queue makes too many of the others."""


_RULE = "\n----\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    subject: str
    text: str
    attributes: dict[str, str]
    """Message attributes that filter policies of subscriptions match."""


def event_detail(message: OutboxMessage) -> dict[str, Any]:
    """Return the keys common to all kinds and those of this one; empty texts are left out."""
    notice = notice_of(message)
    texts = {
        "job": notice.job,
        "training_job_name": notice.training_job_name,
        "what": notice.what,
        "why": notice.why,
        "todo": notice.todo,
        "undo": notice.undo,
    }
    texts_given = {name: text for name, text in texts.items() if text}
    return {
        "version": VERSION,
        "id": message.id,
        "at": iso(message.at),
        "team": notice.team,
        **texts_given,
        **notice.detail,
    }


def is_mailed(notice: Notice) -> bool:
    """Tell whether a notice is mailed; a retry that is not charged is not, as it needs no action."""
    if notice.kind is NoticeKind.JOB_RETRIED and not notice.detail.get("charged"):
        return False
    return notice.kind in MAILED


def mail_of(messages: Sequence[OutboxMessage], *, stack: str) -> Mail:
    """Return the mail for notices of one kind to one team."""
    notice = notice_of(messages[0])
    about = notice.job or notice.training_job_name or notice.team
    if len(messages) > 1:
        about = f"{len(messages)} of team {notice.team}"
    return Mail(
        subject=f"[trainmaster] {notice.kind}: {about}",
        text=_RULE.join(_text(message, stack) for message in messages),
        attributes={"team": notice.team, "kind": notice.kind.value},
    )


def _text(message: OutboxMessage, stack: str) -> str:
    notice = notice_of(message)
    lines = (
        ("", notice.what),
        ("Why: ", notice.why),
        ("What to do: ", notice.todo),
        ("To change that: ", notice.undo),
    )
    paragraphs = [f"{label}{text}" for label, text in lines if text]
    about = f"Stack {stack}, team {notice.team}, {iso(message.at)}, message {message.id}"
    return "\n\n".join([*paragraphs, about]) + "\n"


def notice_of(message: OutboxMessage) -> Notice:
    assert message.notice is not None, message
    return message.notice
