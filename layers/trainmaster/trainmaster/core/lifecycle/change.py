"""A change: one step of a job, as it is written, and what notices and metrics read from it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType

from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import KNOWN_STATUSES
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.refusal_records import RoleChange
from trainmaster.core.planning.snapshot import WarmPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One job before and after a step; the store derives every row that follows from it."""

    before: Job
    after: Job
    ended: Attempt | None = None
    """The attempt that is over, as it is to be recorded."""
    leaves_warm: WarmPool | None = None
    """Warm pool that SageMaker kept of it: from now on counted as warm, no longer as used."""
    keeps_nothing: bool = False
    """Whether SageMaker kept no instances although it should have: a keep-alive was set, and the end
    allows it."""
    role: RoleChange | None = None
    """Change of the record of its role, if AWS refused a start of it."""
    note: Reason | None = None
    """Reason of a requested change, for the history; with a note there is a line even if the state stays."""

    @property
    def versioned(self) -> "Change":
        """The change with the version that writing it makes."""
        return replace(self, after=replace(self.after, ver=self.before.ver + 1))


def status_is_news(change: Change) -> bool:
    """Tell whether this change brought the live attempt into a status unknown to SageMaker's model."""
    before, after = change.before.live, change.after.live
    if after is None or after.progress is None or after.progress.status in {None, *KNOWN_STATUSES}:
        return False
    known = before.progress.status if before is not None and before.progress is not None else None
    return known != after.progress.status


class EndKind(Enum):
    """Outcomes of an attempt's end for its job, or of the end of a job that waited."""

    COMPLETED = auto()
    STOPPED = auto()
    FAILED = auto()
    RETRIED = auto()
    """Requeued; also without a charge as a retry: no capacity, a restored table."""
    PREEMPTED = auto()
    REQUEUED = auto()
    """Stopped because its GPUs were idle or underused, or for the calendar, and requeued."""
    MOVED_TO_ON_DEMAND = auto()


_REQUEUED = frozenset({ReasonCode.IDLE_REQUEUE, ReasonCode.UNDERUSED_REQUEUE, ReasonCode.WINDOW})
"""Ends after which a job comes back that was stopped for no other job."""
_FINAL: Mapping[JobState, EndKind] = MappingProxyType(
    {
        JobState.COMPLETED: EndKind.COMPLETED,
        JobState.STOPPED: EndKind.STOPPED,
        JobState.FAILED: EndKind.FAILED,
    },
)


def end_kind(change: Change) -> EndKind | None:
    """Return the kind of end that a change brought; None if neither the job nor an attempt ended with it."""
    before, after = change.before, change.after
    if after.is_final:
        return None if before.is_final else _FINAL[after.state]
    if change.ended is None or after.is_live:
        return None
    if after.spot.left and not before.spot.left:
        return EndKind.MOVED_TO_ON_DEMAND
    if after.state is not JobState.PREEMPTED:
        return EndKind.RETRIED
    if change.ended.reason is not None and change.ended.reason.code in _REQUEUED:
        return EndKind.REQUEUED
    return EndKind.PREEMPTED


def reason_of_end(change: Change) -> Reason | None:
    return change.after.reason or (change.ended.reason if change.ended else None)


def failure_class(change: Change) -> str:
    """Return the failure class as diagnosed; without a diagnosis, the code of the reason."""
    if change.ended is not None and change.ended.diagnosis is not None:
        return change.ended.diagnosis.failure_class.value
    reason = reason_of_end(change)
    return reason.code if reason else ReasonCode.UNKNOWN


def stop_denied(change: Change) -> Reason | None:
    """Return why AWS denies the stop of an adopted job; None unless this change is the first to report it."""
    why = change.after.waiting
    if change.after.live is None or why is None or why.code is not ReasonCode.NOT_STOPPED:
        return None
    return None if why == change.before.waiting else why
