"""Tells programs (events) and people (mail) what was decided."""

from trainmaster.errands import Errand
from trainmaster.notices.messages import event_detail, is_mailed, mail_of, notice_of
from trainmaster.scheduling.context import Pass


def tell(errand: Errand, now: Pass) -> None:
    """At least once: both carry the errand's id.

    First the event, then the mail: while SNS takes nothing programs hear of it again and drop what they know,
    while EventBridge takes nothing people are not mailed again and again.
    """
    notice = notice_of(errand)
    if now.policy.governing.notifications.events:
        now.notifier.tell(notice.kind, event_detail(errand))
    if is_mailed(notice):
        mail = mail_of(errand, stack=now.stack)
        now.mailer.mail(mail.subject, mail.text, mail.attributes)
