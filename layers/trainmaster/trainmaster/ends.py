"""The table of ends: what each end that SageMaker knows makes of a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.failure_classes import Diagnosis, FailureClass
from trainmaster.jobs import Job, JobState, Reason

_S = JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
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
    training_since: datetime | None = None
    ended_at: datetime | None = None
    selected_type: str | None = None
    """The type SageMaker took of InstancePreferences; None before it has, and where there was no choice."""
    warm_status: str | None = None
    """WarmPoolStatus.Status: Available, InUse, Reused, Terminated; None without a warm pool."""
    billable: timedelta | None = None
    """BillableTimeInSeconds: of each instance, for spot with the discount in it; None before the end."""
    up: timedelta | None = None
    """TrainingTimeInSeconds: how long each instance was there; None before the end."""
    interruptions: int = 0
    """How often SageMaker took its spot instances away."""
    stretches: tuple[Stretch, ...] = ()
    """The oldest first; empty where nothing but the start of Training is known."""

    def trained_by(self, instant: datetime) -> timedelta:
        """In status Training until then, or until its end if that was before; interruptions are left out."""
        last = min(instant, self.ended_at or instant)
        times = (min(one.until or last, last) - one.since for one in self._stretches())
        return sum((max(time, timedelta()) for time in times), timedelta())

    @property
    def trained_before(self) -> timedelta | None:
        """In stretches that are over; None without one."""
        over = [one.until - one.since for one in self.stretches if one.until is not None]
        return sum(over, timedelta()) if over else None

    def _stretches(self) -> tuple[Stretch, ...]:
        if self.stretches or self.training_since is None:
            return self.stretches
        return (Stretch(since=self.training_since, until=None),)


TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
PENDING_TIME_RAN_OUT = "MaxPendingTimeExceeded"
STOPPED_OUTSIDE = "stopped-outside"
"""Code of the reason where nobody of ours asked for the stop."""
MAX_WAIT = "max-wait"
"""Code of the end by MaxWaitTimeExceeded."""
PREEMPTION = "preemption"
"""Code of the reason of a stop that makes room for another job."""
SPOT_FALLBACK = "spot-fallback"
"""The same where the job comes back on on-demand instances."""
IDLE = "idle"
"""Code of the reason of a stop because the GPUs did nothing."""
IDLE_REQUEUE = "idle-requeue"
"""The same where the job comes back."""
CAPACITY_ERROR = "CapacityError"
"""The code before the colon in FailureReason when the instances could not be provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The attempt after one that failed; it is charged to the job."""

    wait: timedelta
    """The back-off before it."""
    waiting: Reason
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters that the batch was halved with; empty where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a SageMaker end makes of a job."""

    becomes: JobState
    reason: Reason
    """Why the attempt is over, and the job with it unless it comes back."""
    of_attempt: Reason | None = None
    """What is kept of it with the attempt, where the job's reason says more."""
    diagnosis: Diagnosis | None = None
    """Of a failure that was looked into."""
    retry: Retry | None = None
    """Of a failure that the job comes back from."""
    moves: bool = False
    """From now on it asks for on-demand instances."""


def end_of(job: Job, seen: Observation | None) -> End | None:
    """The table of ends; None while the training job has not ended.

    What policy decides comes after it: ``retrying`` about failures, ``spot_rules`` about spot attempts.
    ``seen`` is None when SageMaker does not know the training job (any more).
    """
    assert job.is_live, job.state
    if seen is None:
        return _end(_S.FAILED, "deleted-outside", "the training job was deleted in SageMaker")
    if seen.status not in TERMINAL_STATUSES:
        return None
    return _ended(job, seen)


def _ended(job: Job, seen: Observation) -> End:
    stopping = job.state is JobState.STOPPING
    match (seen.status, seen.secondary_status):
        case ("Completed", _):
            return _end(_S.COMPLETED, "completed", "the training job completed")
        case ("Stopped", "MaxRuntimeExceeded"):
            return _end(_S.STOPPED, "max-runtime", "the training job reached its MaxRuntimeInSeconds")
        case _ if stopping:
            return End(becomes=_S.STOPPED, reason=job.reason or _STOPPED_BY_USER)
        case ("Stopped", "MaxWaitTimeExceeded"):
            return _end(_S.STOPPED, MAX_WAIT, "the spot job reached its MaxWaitTimeInSeconds")
        case ("Failed", _):
            return _failed(seen)
        case ("Stopped", secondary) if secondary == PENDING_TIME_RAN_OUT:
            return _end(_S.PENDING, "capacity", "SageMaker had no instances within the pending time")
        case _ if job.state is JobState.PREEMPTING:
            return End(becomes=_S.PREEMPTED, reason=job.reason or _PREEMPTED)
        case _:
            return _end(_S.STOPPED, STOPPED_OUTSIDE, "somebody stopped the training job in SageMaker")


def _failed(seen: Observation) -> End:
    text = seen.failure_reason or "SageMaker gave no reason"
    if text.partition(":")[0].strip() == CAPACITY_ERROR:
        return _end(_S.PENDING, "capacity", text)
    return _end(_S.FAILED, FailureClass.UNKNOWN.value, text)


def _end(becomes: JobState, code: str, message: str) -> End:
    return End(becomes=becomes, reason=Reason(code=code, message=message))


_STOPPED_BY_USER = Reason(code="stopped-by-user", message="stopped on request")
_PREEMPTED = Reason(code=PREEMPTION, message="made room for a job that ranks ahead")
