"""What a job is: its states, the legal steps between them, and what each SageMaker end makes of it.

A *job* is what the user submitted; an *attempt* is one SageMaker training job made for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Self


class JobState(StrEnum):
    PENDING = "pending"
    HELD = "held"
    STARTING = "starting"
    RUNNING = "running"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


_S = JobState

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.STARTING, _S.HELD, _S.STOPPED, _S.FAILED}),
        _S.HELD: frozenset({_S.PENDING, _S.PREEMPTED, _S.STOPPED, _S.FAILED}),
        _S.STARTING: frozenset(
            {_S.RUNNING, _S.PENDING, _S.STOPPING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.RUNNING: frozenset(
            {_S.PREEMPTING, _S.STOPPING, _S.PENDING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.PREEMPTING: frozenset(
            {_S.PREEMPTED, _S.PENDING, _S.STOPPING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.PREEMPTED: frozenset({_S.STARTING, _S.HELD, _S.STOPPED, _S.FAILED}),
        _S.STOPPING: frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.STOPPED: frozenset(),
    },
)

WAITING = frozenset({_S.PENDING, _S.PREEMPTED})
"""In the queue, in their turn."""
LIVE = frozenset({_S.STARTING, _S.RUNNING, _S.PREEMPTING, _S.STOPPING})
"""Hold their instances."""
FINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED})
"""Never left."""


class CapacityType(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, order=True)
class Capacity:
    """What a pool counts: instances of one type, on-demand and managed spot apart."""

    instance_type: str
    capacity_type: CapacityType = CapacityType.ON_DEMAND

    def __str__(self) -> str:
        suffix = ":spot" if self.capacity_type is CapacityType.SPOT else ""
        return f"{self.instance_type}{suffix}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str()`` wrote."""
        instance_type, _, suffix = text.partition(":")
        return cls(instance_type, CapacityType.SPOT if suffix else CapacityType.ON_DEMAND)


Vector = Mapping[Capacity, int]
"""Instances asked for, used or free."""


def vector_text(vector: Vector) -> str:
    """One line for people and keys: ``ml.g5.xlarge:spot=2+ml.p5.48xlarge=1``, always in one order."""
    return "+".join(f"{capacity}={vector[capacity]}" for capacity in sorted(vector))


def parse_vector(text: str) -> dict[Capacity, int]:
    """Read what ``vector_text`` wrote."""
    parts = (part.rpartition("=") for part in text.split("+") if part)
    return {Capacity.parse(capacity): int(count) for capacity, _, count in parts}


def fits(asked: Vector, free: Vector) -> bool:
    return all(free.get(capacity, 0) >= count for capacity, count in asked.items())


def epoch_ms(instant: datetime) -> int:
    """Whole milliseconds since 1970; exact, unlike timestamp()."""
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class IllegalTransitionError(ValueError):
    """A step TRANSITIONS does not have: our own mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a job waits, was stopped or ended: a stable code for programs, a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One SageMaker training job made for a job."""

    number: int
    training_job_name: str
    capacity_type: CapacityType
    claimed_at: datetime
    lease_until: datetime
    """Until then the pass that claimed the job may still be about to create the training job."""
    training_job_arn: str | None = None
    status: str | None = None
    secondary_status: str | None = None
    training_since: datetime | None = None
    """When it first reached Training; None before."""
    stop_sent: bool = False
    """SageMaker took our StopTrainingJob."""
    idle_since: datetime | None = None
    """Its idle alarm is in ALARM since then."""
    ended_at: datetime | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What was submitted; never changes."""

    name: str
    entry_id: str
    """ULID of this submission."""
    team: str
    pool: str
    submitted_by: str
    submitted_at: datetime
    vector: Vector
    capacity_type: CapacityType
    preemptible: bool
    has_checkpoint: bool
    max_runtime: timedelta
    max_wait: timedelta | None
    """Managed spot only: from creation to the end, waiting included."""
    body_hash: str
    """SHA-256 (hex) of the canonical request: the identity of a repeated submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The unit of work, as the table keeps it."""

    spec: JobSpec
    state: JobState
    priority: int
    score: int
    """Turn in the queue: entry time in ms less the boost of the priority; lower is earlier."""
    ver: int = 0
    """Rises with each write; every write is conditional on it."""
    attempt: int = 0
    live: Attempt | None = None
    """The attempt that holds the slot; None while waiting and when final."""
    not_before: datetime | None = None
    """End of a back-off; parked until then."""
    waiting: Reason | None = None
    reason: Reason | None = None
    """Why it ended, or why it is being stopped."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    preemptions: int = 0
    refused_starts: int = 0
    """Starts in a row that AWS put off; the exponent of the back-off."""
    unknown_errors: int = 0
    wasted: Mapping[str, int] = field(default_factory=dict)
    """Seconds of training lost, by cause."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def is_parked(self) -> bool:
        """Waits for an instant or for a person, not for its turn."""
        return self.state is JobState.HELD or (self.is_waiting and self.not_before is not None)

    def moved_to(self, state: JobState) -> "Job":
        """The job after one legal step. Raises IllegalTransitionError."""
        if state not in TRANSITIONS[self.state]:
            message = f"job {self.name!r} cannot go from {self.state} to {state}"
            raise IllegalTransitionError(message)
        return replace(self, state=state)


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


TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
PENDING_TIME_RAN_OUT = "MaxPendingTimeExceeded"
CAPACITY_ERROR = "CapacityError"
"""The code before the colon in FailureReason when the instances could not be provisioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a SageMaker end makes of a job."""

    becomes: JobState
    reason: Reason


def end_of(job: Job, seen: Observation | None) -> End | None:
    """The table of ends; None while the training job has not ended.

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
            return _end(_S.STOPPED, "max-wait", "the spot job reached its MaxWaitTimeInSeconds")
        case ("Failed", _):
            return _failed(seen)
        case ("Stopped", secondary) if secondary == PENDING_TIME_RAN_OUT:
            return _end(_S.PENDING, "capacity", "SageMaker had no instances within the pending time")
        case _ if job.state is JobState.PREEMPTING:
            return End(becomes=_S.PREEMPTED, reason=job.reason or _PREEMPTED)
        case _:
            return _end(_S.STOPPED, "stopped-outside", "somebody stopped the training job in SageMaker")


def _failed(seen: Observation) -> End:
    text = seen.failure_reason or "SageMaker gave no reason"
    if text.partition(":")[0].strip() == CAPACITY_ERROR:
        return _end(_S.PENDING, "capacity", text)
    return _end(_S.FAILED, "training-failed", text)


def _end(becomes: JobState, code: str, message: str) -> End:
    return End(becomes=becomes, reason=Reason(code=code, message=message))


_STOPPED_BY_USER = Reason(code="stopped-by-user", message="stopped on request")
_PREEMPTED = Reason(code="preemption", message="made room for a job that ranks ahead")
