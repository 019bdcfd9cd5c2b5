"""One step of a job, as it is written, and what notices and metrics read from it."""

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
    """One job from one version to the next; the store derives every row that follows from it."""

    before: Job
    after: Job
    ended: Attempt | None = None
    """The attempt that is over, as it is to be remembered."""
    leaves_warm: WarmPool | None = None
    """What SageMaker kept of it: from now on counted as warm, no longer as used."""
    keeps_nothing: bool = False
    """Its instances were to be kept, it ended so that SageMaker keeps them, and it has kept none."""
    role: RoleChange | None = None
    """AWS refused a start of it: what is known of its role from now on."""
    note: Reason | None = None
    """Who wanted it, for the history; with it there is a line even where the state stays."""

    @property
    def versioned(self) -> "Change":
        """The change with the version that writing it makes."""
        return replace(self, after=replace(self.after, ver=self.before.ver + 1))


def status_is_news(change: Change) -> bool:
    """The live attempt is in a status that no version of SageMaker's model has had, since this change."""
    before, after = change.before.live, change.after.live
    if after is None or after.progress is None or after.progress.status in {None, *KNOWN_STATUSES}:
        return False
    known = before.progress.status if before is not None and before.progress is not None else None
    return known != after.progress.status


class EndKind(Enum):
    """What the end of an attempt made of its job, or what ended a job that waited."""

    COMPLETED = auto()
    STOPPED = auto()
    FAILED = auto()
    RETRIED = auto()
    """Comes back; also what is not charged as a retry: no capacity, a restored table."""
    PREEMPTED = auto()
    REQUEUED = auto()
    """Stopped while its GPUs did nothing; comes back."""
    MOVED_TO_ON_DEMAND = auto()


_FINAL: Mapping[JobState, EndKind] = MappingProxyType(
    {
        JobState.COMPLETED: EndKind.COMPLETED,
        JobState.STOPPED: EndKind.STOPPED,
        JobState.FAILED: EndKind.FAILED,
    },
)


def end_kind(change: Change) -> EndKind | None:
    """None: neither the job nor an attempt of it ended with this change."""
    before, after = change.before, change.after
    if after.is_final:
        return None if before.is_final else _FINAL[after.state]
    if change.ended is None or after.is_live:
        return None
    if after.spot.left and not before.spot.left:
        return EndKind.MOVED_TO_ON_DEMAND
    if after.state is not JobState.PREEMPTED:
        return EndKind.RETRIED
    if change.ended.reason is not None and change.ended.reason.code is ReasonCode.IDLE_REQUEUE:
        return EndKind.REQUEUED
    return EndKind.PREEMPTED


def reason_of_end(change: Change) -> Reason | None:
    return change.after.reason or (change.ended.reason if change.ended else None)


def failure_class(change: Change) -> str:
    """As diagnosed; where nobody did, the code of the reason."""
    if change.ended is not None and change.ended.diagnosis is not None:
        return change.ended.diagnosis.failure_class.value
    reason = reason_of_end(change)
    return reason.code if reason else ReasonCode.UNKNOWN


def stop_denied(change: Change) -> Reason | None:
    """Why AWS does not let us stop an adopted job; None unless this change is the first to say so."""
    why = change.after.waiting
    if change.after.live is None or why is None or why.code is not ReasonCode.NOT_STOPPED:
        return None
    return None if why == change.before.waiting else why
