"""Outbox messages: rows for work outside the table, written by its cause, done and deleted by ``schedule``.

A message is left in the same transaction as its cause, so it cannot get lost. Done twice (a crash between
doing and deleting) it does no harm: its notice carries its id, by which a reader drops the second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.core.jobs.end_conditions import EndedParent
from trainmaster.core.rules.violation import ViolationRecord


class NoticeKind(StrEnum):
    """``detail-type`` of the events. Each is documented in docs/events.md."""

    JOB_COMPLETED = "Job Completed"
    JOB_STOPPED = "Job Stopped"
    JOB_FAILED = "Job Failed"
    JOB_RETRIED = "Job Retried"
    """It failed and comes back."""
    JOB_PREEMPTED = "Job Preempted"
    JOB_IDLE = "Job Idle"
    """The warning of an idle job; the policy decides what follows."""
    JOB_BUSY_AGAIN = "Job Busy Again"
    JOB_REQUEUED = "Job Requeued"
    """Stopped while it was idle; it comes back."""
    JOB_UNDERUSED = "Job Underused"
    LOSS_WARNING = "Job Loss Warning"
    """Its loss shows that it fails; the policy decides what follows."""
    JOB_UNGUARDED = "Job Unguarded"
    CHECKPOINT_OVERDUE = "Checkpoint Overdue"
    MOVED_TO_ON_DEMAND = "Job Moved To On-Demand"
    STAYS_ON_SPOT = "Job Stays On Spot"
    """It should move, and the pool has no on-demand instances of its type."""
    UNMANAGED_JOB = "Unmanaged Job"
    """A training job bypassed the queue; the notice says what was done about it."""
    RULE_VIOLATED = "Rule Violated"
    """A queued job violates a rule that is in audit mode."""
    BUDGET_WARNING = "Budget Warning"
    START_REFUSED = "Job Start Refused"
    """AWS has refused to start it a few times in a row, for a limit of the account."""
    PREEMPTION_FUTILE = "Preemption Did Not Help"
    """Others were stopped for a job, and AWS did not let it train; sent once until it trains."""
    ARRAY_ENDED = "Array Ended"
    """Every task of an array has ended: one notice for all of them."""
    ARRAY_HELD = "Array Held"
    """An array is held because its tasks fail one after the other in the same way."""
    DEPENDENTS_ENDED = "Dependents Ended"
    """A job ended, and so did others that were to run after it; once a team, however many there are."""
    PLATFORM_WARNING = "Platform Warning"
    """AWS does not do what the policy or the stack counts on; sent to operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One decision, for the people it concerns and for programs."""

    kind: NoticeKind
    team: str
    training_job_name: str | None = None
    job: str | None = None
    what: str
    """Sentence that says what happened."""
    why: str = ""
    todo: str = ""
    """Advice on what the reader can do; empty if there is none."""
    undo: str = ""
    """Advice on how to change that; empty if there is none."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Facts that programs read: texts, whole numbers, booleans, and lists and mappings of them."""


class MessageKind(StrEnum):
    TELL = "tell"
    DELETE_ALARMS = "delete-alarms"
    STOP_UNMANAGED = "stop-stray"
    RELEASE_DEPENDENTS = "release-dependents"
    """A job has ended that others wait for."""
    FOLLOW_ARRAY = "follow-array"
    """Somebody changed an array, and the jobs that its tasks are have to follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """One row: a task that ``schedule`` is to do once."""

    id: str
    """Id made of the cause, so that the same cause leaves the same message."""
    kind: MessageKind
    at: datetime
    """Instant at which it was left."""
    notice: Notice | None = None
    """The notice to be sent; only of kind TELL."""
    training_job_name: str | None = None
    """Name of the training job; None of kind TELL."""
    found: ViolationRecord | None = None
    """The violation that it is stopped for; only of kind STOP_UNMANAGED."""
    alarms: tuple[str, ...] = ()
    """Names of alarms, without ``trainmaster-`` and the stack; only of kind DELETE_ALARMS."""
    lease_until: datetime | None = None
    """End of the lease of the pass that is doing it; should that pass die, another takes it from then on."""
    parent: EndedParent | None = None
    """The parent whose end RELEASE_DEPENDENTS passes on."""
    upto: str | None = None
    """Last child that RELEASE_DEPENDENTS has informed, by name, or last position that FOLLOW_ARRAY has seen
    to, as text; None if there is none."""
    array: str | None = None
    """Name of the array of FOLLOW_ARRAY."""
    releases: bool | None = None
    """Whether the array was released, so that FOLLOW_ARRAY releases its held tasks."""

    @property
    def schema(self) -> int:
        """The first release that understands the message: one before it leaves the row alone."""
        kind = self.kind if self.notice is None else self.notice.kind
        return _SCHEMAS.get(kind, 1)


_SCHEMAS: Mapping[MessageKind | NoticeKind, int] = {
    MessageKind.RELEASE_DEPENDENTS: 2,
    NoticeKind.DEPENDENTS_ENDED: 2,
    MessageKind.FOLLOW_ARRAY: 3,
    NoticeKind.ARRAY_ENDED: 3,
    NoticeKind.ARRAY_HELD: 3,
}
"""Kinds that came later than the first release, with the schema that brought them."""
