"""Observations from SageMaker and S3: of our training jobs, of unmanaged ones, of checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from trainmaster.core.durations.work_speeds import WorkSpeed
from trainmaster.core.jobs.attempts import StatusStart

TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
KNOWN_STATUSES = TERMINAL_STATUSES | {"InProgress", "Stopping", "Deleting"}
"""Every TrainingJobStatus of the model; any other counts as running."""
_CAPACITY_ERROR = "CapacityError"
"""Code before the colon in FailureReason when the instances could not be provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInterval:
    """One time in status Training. A spot attempt has another one after each interruption."""

    since: datetime
    until: datetime | None
    """End of the interval; None: it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One answer of DescribeTrainingJob about a training job."""

    training_job_name: str
    training_job_arn: str
    status: str
    secondary_status: str
    failure_reason: str | None = None
    created_at: datetime | None = None
    """CreationTime, by SageMaker's clock as all instants here; None where it was not recorded."""
    training_since: datetime | None = None
    launched_at: datetime | None = None
    """TrainingStartTime: when it had its instances; None before that."""
    max_pending: timedelta | None = None
    """MaxPendingTimeInSeconds of its request; None: it has none."""
    ended_at: datetime | None = None
    selected_type: str | None = None
    """The type SageMaker took of InstancePreferences; None before it has, and where there was no choice."""
    warm_status: str | None = None
    """WarmPoolStatus.Status: Available, InUse, Reused, Terminated; None without a warm pool."""
    retained: timedelta | None = None
    """WarmPoolStatus.ResourceRetainedBillableTimeInSeconds: time that its warm pool is billed for so far."""
    billable: timedelta | None = None
    """BillableTimeInSeconds: time billed for each instance, after the spot discount; None before the end."""
    up: timedelta | None = None
    """TrainingTimeInSeconds: time that each instance was there; None before the end."""
    interruptions: int = 0
    """Number of times that SageMaker took its spot instances away."""
    training_intervals: tuple[TrainingInterval, ...] = ()
    """Times in status Training, the oldest first; empty where only the start of the first is known."""
    statuses: tuple[StatusStart, ...] = ()
    """SecondaryStatusTransitions, the oldest first."""
    speed: WorkSpeed | None = None
    """Samples or tokens a second, as FinalMetricDataList has it; None if no metric in it tells that."""

    def trained_by(self, instant: datetime) -> timedelta:
        """Return the time in status Training up to an instant or its end, interruptions left out."""
        last = min(instant, self.ended_at or instant)
        times = (
            min(interval.until or last, last) - interval.since for interval in self._training_intervals()
        )
        return sum((max(time, timedelta()) for time in times), timedelta())

    @property
    def trained_before(self) -> timedelta | None:
        """Time in training intervals that are over; None without one."""
        over = [
            interval.until - interval.since
            for interval in self.training_intervals
            if interval.until is not None
        ]
        return sum(over, timedelta()) if over else None

    @property
    def never_trained(self) -> bool:
        """Whether it never had its instances, so that it costs nothing."""
        return self.training_since is None and self.launched_at is None and not self.billable

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL_STATUSES

    def _training_intervals(self) -> tuple[TrainingInterval, ...]:
        if self.training_intervals or self.training_since is None:
            return self.training_intervals
        return (TrainingInterval(since=self.training_since, until=None),)


class TrainingJobEnd(StrEnum):
    """Ends of a training job that its job treats differently: status and secondary status."""

    GONE = "not found"
    COMPLETED = "Completed"
    MAX_RUNTIME = "Stopped/MaxRuntimeExceeded"
    MAX_WAIT = "Stopped/MaxWaitTimeExceeded"
    NEVER_TRAINED = "never trained, its pending time over"
    """Stopped or Failed, whatever else is reported; ``decision.end_of`` recognises it by the times."""
    STOPPED = "Stopped"
    """Stopped with any other secondary status."""
    NO_CAPACITY = "Failed/CapacityError"
    """Failed, with a FailureReason that begins with it."""
    FAILED = "Failed"

    @classmethod
    def of(cls, seen: Observation | None) -> Self:
        """Classify an end; ``seen`` is None when SageMaker does not know the training job (any more)."""
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
    """A training job that was started outside the queue, as far as SageMaker shows it."""

    observation: Observation
    request: Mapping[str, Any]
    """The CreateTrainingJob request that would make it again, without tags."""
    created_at: datetime
    """CreationTime, in whole milliseconds."""
    tuning_job_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a list of training jobs."""

    training_job_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest checkpoint that was found."""

    written_at: datetime | None = None
    """When it was written; None: none was found."""
    is_certain: bool = True
    """False if not everything could be read, so that there may be a newer one."""
    is_readable: bool = True
    """False if S3 denies the stack access to the prefix."""
