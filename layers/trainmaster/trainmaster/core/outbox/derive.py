"""Derive the messages of a job's step, which the step's transaction writes and ``schedule`` carries out."""

from collections.abc import Callable, Sequence
from datetime import datetime

from trainmaster.core.jobs.end_conditions import EndedParent
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import ended_parent
from trainmaster.core.monitoring.alarms import names_of
from trainmaster.core.outbox.messages import MessageKind, Notice, OutboxMessage
from trainmaster.core.outbox.texts.job_ended import end_notice
from trainmaster.core.outbox.texts.job_running import (
    busy_again_notice,
    checkpoint_notice,
    idle_notice,
    loss_notice,
    spot_notice,
    underused_notice,
    unguarded_notice,
)
from trainmaster.core.outbox.texts.platform import job_fault_notice
from trainmaster.core.outbox.texts.preemptions import futile_preemption_notice, futile_preemption_warning
from trainmaster.core.outbox.texts.refusals import (
    start_refused_notice,
    starts_paused_notice,
    unknown_status_notice,
)
from trainmaster.core.outbox.texts.rules_and_budgets import job_not_stopped_notice
from trainmaster.core.outbox.texts.wording import to_tell


def messages_of_end(change: Change, *, at: datetime) -> tuple[OutboxMessage, ...]:
    """Return the deletion of an ended attempt's alarms, if any; their names follow from its size."""
    ended = change.ended
    if ended is None or ended.watch.monitored is None:
        return ()
    names = names_of(ended.training_job_name, hosts=ended.shape.instances)
    return (deletion(ended.training_job_name, names, at=at),)


def deletion(training_job_name: str, alarms: Sequence[str], *, at: datetime) -> OutboxMessage:
    """Return the message that deletes alarms; it has one id for each training job, however often it is left.

    Args:
        training_job_name: The training job that was monitored.
        alarms: Names of alarms, without ``trainmaster-`` and the stack.
        at: Instant at which the message is left.
    """
    return OutboxMessage(
        id=f"alarms#{training_job_name}",
        kind=MessageKind.DELETE_ALARMS,
        at=at,
        training_job_name=training_job_name,
        alarms=tuple(alarms),
    )


def _end_notice(change: Change) -> Notice | None:
    """Tell of an end, unless it is of a task or followed from another job's: those have one together."""
    if change.after.spec.array is not None:
        return None
    reason = change.after.reason
    follows = change.after.is_final and reason is not None and reason.code is ReasonCode.DEPENDENCY
    return None if follows else end_notice(change)


_NOTICES: tuple[Callable[[Change], Notice | None], ...] = (
    _end_notice,
    idle_notice,
    busy_again_notice,
    underused_notice,
    loss_notice,
    unguarded_notice,
    checkpoint_notice,
    spot_notice,
    job_not_stopped_notice,
    start_refused_notice,
    starts_paused_notice,
    unknown_status_notice,
    job_fault_notice,
    futile_preemption_notice,
    futile_preemption_warning,
)
"""Makers of notices, each about another kind of decision."""


def messages_of(change: Change, *, at: datetime) -> tuple[OutboxMessage, ...]:
    """Return the messages of one change. Their ids name the version that it makes, so each is left once.

    A preemption changes up to 24 jobs in a transaction of at most 100 items, so asking a job to stop leaves
    none; it is reported when it has stopped.
    """
    cause = f"{change.before.spec.entry_id}#{change.before.ver + 1:06d}"
    notices = [notice for about in _NOTICES if (notice := about(change)) is not None]
    messages = tuple(to_tell(notice, cause=cause, at=at) for notice in notices)
    return (*messages, *messages_of_end(change, at=at), *messages_to_dependents(change, at=at))


def messages_to_dependents(change: Change, *, at: datetime) -> tuple[OutboxMessage, ...]:
    """Return the message that releases or ends the jobs that wait for this one; none unless it ended now."""
    job = change.after
    if change.before.is_final or not job.is_final or not job.has_dependents:
        return ()
    return (message_to_dependents(job, at=at),)


def message_to_dependents(job: Job, *, at: datetime) -> OutboxMessage:
    """The same for the same job, however often it is left."""
    return message_of_parent(ended_parent(job), at=at)


def message_of_parent(parent: EndedParent, *, at: datetime) -> OutboxMessage:
    """Return the message of a job, a task or an array that has ended."""
    # "#" sorts before every entry id: children do not wait behind notices that cannot be sent for now.
    message_id = f"#dependents#{parent.entry_id}"
    return OutboxMessage(id=message_id, kind=MessageKind.RELEASE_DEPENDENTS, at=at, parent=parent)
