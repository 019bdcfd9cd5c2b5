"""What a job's next step leaves to be told and tidied up, for the transaction that writes it."""

from collections.abc import Callable
from datetime import datetime

from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.alarm_errands import errands_of_end
from trainmaster.core.outbox.messages import Errand, Notice
from trainmaster.core.outbox.texts.job_ended import end_notice
from trainmaster.core.outbox.texts.job_running import (
    busy_again_notice,
    checkpoint_notice,
    idle_notice,
    spot_notice,
    underused_notice,
    unguarded_notice,
)
from trainmaster.core.outbox.texts.rules_and_budgets import job_not_stopped_notice
from trainmaster.core.outbox.texts.wording import to_tell

_NOTICES: tuple[Callable[[Change], Notice | None], ...] = (
    end_notice,
    idle_notice,
    busy_again_notice,
    underused_notice,
    unguarded_notice,
    checkpoint_notice,
    spot_notice,
    job_not_stopped_notice,
)
"""Each about another decision, of another kind."""


def errands_of(change: Change, *, at: datetime) -> tuple[Errand, ...]:
    """Errands of one change. Their ids name the version that it makes, so each is left once.

    A preemption changes up to 24 jobs in one transaction of at most 100 items, so asking a job to stop leaves
    none; it is told about when it has stopped.
    """
    cause = f"{change.before.spec.entry_id}#{change.before.ver + 1:06d}"
    notices = [notice for about in _NOTICES if (notice := about(change)) is not None]
    told = tuple(to_tell(notice, cause=cause, at=at) for notice in notices)
    return (*told, *errands_of_end(change, at=at))
