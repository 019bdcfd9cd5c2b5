"""Tells programs (events) and people (mail) what was decided."""

from trainmaster.errands import Errand
from trainmaster.scheduling.context import Pass


def tell(errand: Errand, now: Pass) -> None:
    """At least once: each message carries the errand's id."""
    notice = errand.notice
    assert notice is not None, errand
    if now.policy.governing.notifications.events:
        now.notifier.tell(notice.kind, {"id": errand.id, "team": notice.team, **notice.detail})
