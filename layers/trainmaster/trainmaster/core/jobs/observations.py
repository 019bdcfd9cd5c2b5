"""What SageMaker and S3 say: of our training jobs, of those that others started, of checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from trainmaster.core.jobs.attempts import StatusStart

TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
KNOWN_STATUSES = TERMINAL_STATUSES | {"InProgress", "Stopping", "Deleting"}
"""Every TrainingJobStatus of the model; one that is not among them counts as running."""
_CAPACITY_ERROR = "CapacityError"
"""The code before the colon in FailureReason when the instances could not be provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInterval:
    """One time in status Training. A spot attempt has another one after each interruption."""

    since: datetime
    until: datetime | None
    """None: it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What DescribeTrainingJob said about one training job."""

    training_job_name: str
    training_job_arn: str
    status: str
    secondary_status: str
    failure_reason: str | None = None
    created_at: datetime | None = None
    """CreationTime, by SageMaker's clock as all instants here; None where nobody noted it."""
    training_since: datetime | None = None
    launched_at: datetime | None = None
    """TrainingStartTime: when it had its instances; None before."""
    max_pending: timedelta | None = None
    """MaxPendingTimeInSeconds of its request; None: it has none."""
    ended_at: datetime | None = None
    selected_type: str | None = None
    """The type SageMaker took of InstancePreferences; None before it has, and where there was no choice."""
    warm_status: str | None = None
    """WarmPoolStatus.Status: Available, InUse, Reused, Terminated; None without a warm pool."""
    retained: timedelta | None = None
    """WarmPoolStatus.ResourceRetainedBillableTimeInSeconds: what its warm pool is billed for so far."""
    billable: timedelta | None = None
    """BillableTimeInSeconds: of each instance, for spot with the discount in it; None before the end."""
    up: timedelta | None = None
    """TrainingTimeInSeconds: how long each instance was there; None before the end."""
    interruptions: int = 0
    """How often SageMaker took its spot instances away."""
    training_intervals: tuple[TrainingInterval, ...] = ()
    """The oldest first; empty where nothing but the start of Training is known."""
    statuses: tuple[StatusStart, ...] = ()
    """SecondaryStatusTransitions, the oldest first."""

    def trained_by(self, instant: datetime) -> timedelta:
        """In status Training until then, or until its end if that was before; interruptions are left out."""
        last = min(instant, self.ended_at or instant)
        times = (min(one.until or last, last) - one.since for one in self._training_intervals())
        return sum((max(time, timedelta()) for time in times), timedelta())

    @property
    def trained_before(self) -> timedelta | None:
        """In intervals that are over; None without one."""
        over = [one.until - one.since for one in self.training_intervals if one.until is not None]
        return sum(over, timedelta()) if over else None

    @property
    def never_trained(self) -> bool:
        """It never had its instances, and costs nothing."""
        return self.training_since is None and self.launched_at is None and not self.billable

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL_STATUSES

    def _training_intervals(self) -> tuple[TrainingInterval, ...]:
        if self.training_intervals or self.training_since is None:
            return self.training_intervals
        return (TrainingInterval(since=self.training_since, until=None),)


class TrainingJobEnd(StrEnum):
    """How a training job ended, as far as that matters to its job: status and secondary status."""

    GONE = "not found"
    COMPLETED = "Completed"
    MAX_RUNTIME = "Stopped/MaxRuntimeExceeded"
    MAX_WAIT = "Stopped/MaxWaitTimeExceeded"
    NEVER_TRAINED = "never trained, its pending time over"
    """Stopped or Failed, whatever else it says; ``decision.end_of`` tells it by the times."""
    STOPPED = "Stopped"
    """With any other secondary status."""
    NO_CAPACITY = "Failed/CapacityError"
    """FailureReason begins with it."""
    FAILED = "Failed"

    @classmethod
    def of(cls, seen: Observation | None) -> Self:
        """``seen`` is None when SageMaker does not know the training job (any more)."""
        if seen is None:
            return cls.GONE
        assert seen.has_ended, seen.status
        code = (seen.failure_reason or "").partition(":")[0].strip()
        if seen.status == "Failed" and code == _CAPACITY_ERROR:
            return cls.NO_CAPACITY
        exact = f"{seen.status}/{seen.secondary_status}"
        return cls(exact if exact in _EXACT else seen.status)


_EXACT = frozenset({TrainingJobEnd.MAX_RUNTIME, TrainingJobEnd.MAX_WAIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A training job that somebody else started, as far as SageMaker shows it."""

    observation: Observation
    request: Mapping[str, Any]
    """The CreateTrainingJob request that would make it again; without tags."""
    created_at: datetime
    """In whole milliseconds."""
    tuning_job_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a list of training jobs."""

    training_job_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest checkpoint somebody found."""

    written_at: datetime | None = None
    """None: none was found."""
    is_certain: bool = True
    """False: not everything could be read, so there may be a newer one."""
    is_readable: bool = True
    """False: S3 lets nobody of the stack look there."""
