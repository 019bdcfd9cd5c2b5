"""Tells programs (events) and people (mail) what was decided."""

from collections.abc import Sequence

from trainmaster.core.outbox.messages import Errand
from trainmaster.core.outbox.render import event_detail, mail_of, notice_of
from trainmaster.services.scheduler.context import Pass


def announce(errand: Errand, now: Pass) -> None:
    """The event; the policy can do without. At least once: it carries the errand's id."""
    if now.policy.governing.notifications.events:
        now.notifier.tell(notice_of(errand).kind, event_detail(errand))


def mail(errands: Sequence[Errand], now: Pass) -> None:
    """One mail, of one notice or of several of one kind to one team."""
    one = mail_of(errands, stack=now.stack)
    now.mailer.mail(one.subject, one.text, one.attributes)
