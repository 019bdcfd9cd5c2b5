"""What a job is: its states, the legal steps between them, and what each SageMaker end makes of it.

A *job* is what the user submitted; an *attempt* is one SageMaker training job made for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
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


class Capacity(str):
    """What a pool counts: instances of one type, on-demand and managed spot apart.

    A text (``ml.g5.xlarge``, ``ml.g5.xlarge:spot``), because it is the key of nearly every count of a pass
    and texts remember their hash.
    """

    __slots__ = ()

    def __new__(cls, instance_type: str, capacity_type: CapacityType = CapacityType.ON_DEMAND) -> Self:
        suffix = _SPOT if capacity_type is CapacityType.SPOT else ""
        return super().__new__(cls, instance_type + suffix)

    @property
    def instance_type(self) -> str:
        return self.removesuffix(_SPOT)

    @property
    def capacity_type(self) -> CapacityType:
        return CapacityType.SPOT if self.endswith(_SPOT) else CapacityType.ON_DEMAND

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str()`` wrote."""
        return super().__new__(cls, text)


_SPOT = ":spot"

Vector = Mapping[Capacity, int]
"""Instances asked for, used or free."""


def vector_text(vector: Vector) -> str:
    """One line for people and keys: ``ml.g5.xlarge:spot=2+ml.p5.48xlarge=1``, always in one order."""
    return "+".join(f"{capacity}={vector[capacity]}" for capacity in sorted(vector))


def parse_vector(text: str) -> dict[Capacity, int]:
    """Read what ``vector_text`` wrote."""
    parts = (part.rpartition("=") for part in text.split("+") if part)
    return {Capacity.parse(capacity): int(count) for capacity, _, count in parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One form a job can run in."""

    vector: Vector
    subnet: str | None = None
    """The one subnet it is bound to; None: those of the request."""
    warm_key: str | None = None
    """What a warm pool must have in common with it to be reused; None where SageMaker keeps none."""

    @property
    def capacity_type(self) -> CapacityType:
        """One shape is either on-demand or spot as a whole."""
        return next(iter(self.vector)).capacity_type

    @property
    def instances(self) -> int:
        return sum(self.vector.values())


class Choice(StrEnum):
    """Who picks one of several shapes."""

    FIRST_FIT = "first-fit"
    """The planner: the first that fits."""
    SAGEMAKER = "sagemaker"
    """SageMaker (InstancePreferences): all that have room are held until it says which it took."""


def asked_for(shapes: Sequence[Shape], choice: Choice) -> Vector:
    """What must be free at most: the best shape, or all that SageMaker may choose from."""
    if choice is Choice.FIRST_FIT:
        return shapes[0].vector
    return {capacity: count for shape in shapes for capacity, count in shape.vector.items()}


def lane_text(shapes: Sequence[Shape], choice: Choice) -> str:
    """Equal for jobs that ask for the same thing: ``ml.g5.xlarge=2``, alternatives with ``>`` between."""
    between = ">" if choice is Choice.FIRST_FIT else "|"
    subnets = (f"@{shape.subnet}" if shape.subnet else "" for shape in shapes)
    return between.join(vector_text(shape.vector) + at for shape, at in zip(shapes, subnets, strict=True))


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
    shape: Shape
    """What it holds. With InstancePreferences every type SageMaker may take, until it has taken one."""
    max_runtime: timedelta
    """MaxRuntimeInSeconds of this attempt: what is left of the job's."""
    claimed_at: datetime
    lease_until: datetime
    """Until then the pass that claimed the job may still be about to create the training job."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds, of spot attempts."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds; None: it leaves no warm pool."""
    reuses: str | None = None
    """The training job whose warm pool it was claimed with; None once SageMaker has said so, or without."""
    usd_per_hour: Decimal | None = None
    """Of all its instances, as priced at the claim; None where the price is unknown."""
    reserved_cents: int = 0
    """Worst case, counted against the team's month until the bill is known."""
    month: str | None = None
    """``YYYY-MM`` (UTC) of the claim: the month it is charged to."""
    training_job_arn: str | None = None
    status: str | None = None
    secondary_status: str | None = None
    training_since: datetime | None = None
    """When it first reached Training; None before."""
    last_checkpoint: datetime | None = None
    """The newest checkpoint seen in S3; a lower bound."""
    taken_by: str | None = None
    """The job it is being preempted for."""
    taken_by_team: str | None = None
    stop_sent: bool = False
    """SageMaker took our StopTrainingJob."""
    idle_since: datetime | None = None
    """Its idle alarm is in ALARM since then."""
    ended_at: datetime | None = None
    reason: Reason | None = None
    instance_seconds: int = 0
    """How long its instances ran, all together; set at the end."""
    cents: int | None = None
    """What it cost; None until it has ended, or where the price is unknown."""
    cents_by: Mapping[str, int] = field(default_factory=dict)
    """The same by what it was spent on."""

    @property
    def vector(self) -> Vector:
        return self.shape.vector

    @property
    def capacity_type(self) -> CapacityType:
        return self.shape.capacity_type


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
    shapes: tuple[Shape, ...]
    """The forms it can run in, the best first; nearly always one."""
    preemptible: bool
    max_runtime: timedelta
    max_wait: timedelta | None
    """Managed spot only: from creation to the end, waiting included."""
    body_hash: str
    """SHA-256 (hex) of the canonical request: the identity of a repeated submission."""
    choice: Choice = Choice.FIRST_FIT
    checkpoint_uri: str | None = None
    """CheckpointConfig.S3Uri; None: a stop loses everything."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds as asked for: a wish, cut to the pool's."""
    predicted: timedelta | None = None
    """Mean of the team's last two run times in this shape, when it was submitted."""

    @property
    def has_checkpoint(self) -> bool:
        return self.checkpoint_uri is not None

    @property
    def vector(self) -> Vector:
        """What it asks for while it waits; with InstancePreferences every type there is a choice of."""
        return asked_for(self.shapes, self.choice)

    @property
    def capacity_type(self) -> CapacityType:
        return self.shapes[0].capacity_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The unit of work, as the table keeps it."""

    spec: JobSpec
    state: JobState
    priority: int
    score: int
    """Turn in the queue, lower is earlier: ``PoolPolicy.score``."""
    ranked_by: str = ""
    """``PoolPolicy.order_key`` of the order the score was made with."""
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
    survived: timedelta = timedelta()
    """Training time of earlier attempts that is safe in checkpoints."""
    extensions: int = 0
    """Attempts that got more run time than was left of the job's, so that they get anywhere at all."""
    refused_starts: int = 0
    """Starts in a row that AWS put off; the exponent of the back-off."""
    unknown_errors: int = 0
    wasted: Mapping[str, int] = field(default_factory=dict)
    """Seconds of training lost, by cause."""
    cents: int = 0
    """What its ended attempts cost, as far as prices are known."""
    unpriced: bool = False
    """One of them had no known price."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def vector(self) -> Vector:
        """What it holds, or asks for while it waits."""
        return self.live.vector if self.live else self.spec.vector

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
    selected_type: str | None = None
    """The type SageMaker took of InstancePreferences; None before it has, and where there was no choice."""
    warm_status: str | None = None
    """WarmPoolStatus.Status: Available, InUse, Reused, Terminated; None without a warm pool."""
    billable: timedelta | None = None
    """BillableTimeInSeconds: of each instance, for spot with the discount in it; None before the end."""


TERMINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""TrainingJobStatus values that are final. Source: SageMaker API, DescribeTrainingJob."""
PENDING_TIME_RAN_OUT = "MaxPendingTimeExceeded"
STOPPED_OUTSIDE = "stopped-outside"
"""Code of the reason where nobody of ours asked for the stop."""
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
            return _end(_S.STOPPED, STOPPED_OUTSIDE, "somebody stopped the training job in SageMaker")


def _failed(seen: Observation) -> End:
    text = seen.failure_reason or "SageMaker gave no reason"
    if text.partition(":")[0].strip() == CAPACITY_ERROR:
        return _end(_S.PENDING, "capacity", text)
    return _end(_S.FAILED, "training-failed", text)


def _end(becomes: JobState, code: str, message: str) -> End:
    return End(becomes=becomes, reason=Reason(code=code, message=message))


_STOPPED_BY_USER = Reason(code="stopped-by-user", message="stopped on request")
_PREEMPTED = Reason(code="preemption", message="made room for a job that ranks ahead")
