"""What is to be done outside the table because of something in it: rows that ``schedule`` does and deletes.

A message is left in the same transaction as its cause, so it cannot get lost; done twice (a crash between
doing and deleting) it does no harm, and what it tells carries its id for whoever wants each only once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.core.jobs.conditions import EndedParent
from trainmaster.core.rules.violation import ViolationRecord


class NoticeKind(StrEnum):
    """The ``detail-type`` of the event. Each is documented in docs/events.md."""

    JOB_COMPLETED = "Job Completed"
    JOB_STOPPED = "Job Stopped"
    JOB_FAILED = "Job Failed"
    JOB_RETRIED = "Job Retried"
    """It failed and comes back."""
    JOB_PREEMPTED = "Job Preempted"
    JOB_IDLE = "Job Idle"
    """The warning; what comes next depends on the policy."""
    JOB_BUSY_AGAIN = "Job Busy Again"
    JOB_REQUEUED = "Job Requeued"
    """Stopped while it was idle; comes back."""
    JOB_UNDERUSED = "Job Underused"
    JOB_UNGUARDED = "Job Unguarded"
    CHECKPOINT_OVERDUE = "Checkpoint Overdue"
    MOVED_TO_ON_DEMAND = "Job Moved To On-Demand"
    STAYS_ON_SPOT = "Job Stays On Spot"
    """It should move, and the pool has no on-demand instances of its type."""
    UNMANAGED_JOB = "Unmanaged Job"
    """A training job that bypassed the queue; what became of it."""
    RULE_VIOLATED = "Rule Violated"
    """By a queued job, in audit mode."""
    BUDGET_WARNING = "Budget Warning"
    START_REFUSED = "Job Start Refused"
    """AWS has refused to start it a few times in a row, for a limit of the account."""
    PREEMPTION_FUTILE = "Preemption Did Not Help"
    """Others were stopped for a job, and AWS did not let it train; once until it trains."""
    DEPENDENTS_ENDED = "Dependents Ended"
    """A job ended, and so did others that were to run after it; once a team, however many there are."""
    PLATFORM_WARNING = "Platform Warning"
    """For operators: AWS does not do what the policy or the stack counts on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One decision, for the people it concerns and for programs."""

    kind: NoticeKind
    team: str
    training_job_name: str | None = None
    job: str | None = None
    what: str
    """What happened, in a sentence."""
    why: str = ""
    todo: str = ""
    """What its reader can do."""
    undo: str = ""
    """How to change that."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """For programs: texts, whole numbers, booleans, and lists and mappings of them."""


class MessageKind(StrEnum):
    TELL = "tell"
    DELETE_ALARMS = "delete-alarms"
    STOP_UNMANAGED = "stop-stray"
    RELEASE_DEPENDENTS = "release-dependents"
    """A job has ended that others wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """One row: what ``schedule`` is to do once."""

    id: str
    """Made of its cause: the same cause leaves the same message."""
    kind: MessageKind
    at: datetime
    """When it was left."""
    notice: Notice | None = None
    """Of TELL."""
    training_job_name: str | None = None
    """Of the others."""
    found: ViolationRecord | None = None
    """Of STOP_UNMANAGED: what it is stopped for."""
    alarms: tuple[str, ...] = ()
    """Of DELETE_ALARMS: their names, without ``trainmaster-`` and the stack."""
    lease_until: datetime | None = None
    """A pass is at it; should it die, the next one takes it from then on."""
    parent: EndedParent | None = None
    """Of RELEASE_DEPENDENTS."""
    upto: str | None = None
    """Of RELEASE_DEPENDENTS: name of the last child that knows of the end; None: none does yet."""

    @property
    def schema(self) -> int:
        """The first release that understands the message: one before it leaves the row alone."""
        is_new = self.kind is MessageKind.RELEASE_DEPENDENTS or (
            self.notice is not None and self.notice.kind is NoticeKind.DEPENDENTS_ENDED
        )
        return 2 if is_new else 1
