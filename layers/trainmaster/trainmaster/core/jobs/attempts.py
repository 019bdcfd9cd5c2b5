"""An attempt: one SageMaker training job made for a job, in parts of what is set together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.instances import CapacityType, Shape, Vector
from trainmaster.core.jobs.reason_codes import Code, ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a job waits, was stopped or ended: a stable code for programs, a sentence for people."""

    code: Code
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """How its instances were taken, and at what rate."""

    at: datetime
    lease_until: datetime
    """Until then the pass that claimed the job may still be about to create the training job."""
    reuses: str | None = None
    """The training job whose warm pool it was claimed with; None once SageMaker has said so, or without."""
    usd_per_hour: Decimal | None = None
    """Of all its instances, as priced at the claim; None where the price is unknown."""
    reserved_cents: int = 0
    """Worst case, counted against the team's month until the bill is known."""
    month: str | None = None
    """``YYYY-MM`` (UTC): the month it is charged to."""
    half_life: timedelta | None = None
    """With which its use is forgotten; None: ``past_use.HALF_LIFE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What SageMaker says of it."""

    training_job_arn: str
    status: str | None = None
    secondary_status: str | None = None
    training_since: datetime | None = None
    """When it first reached Training; None before."""


MOST_STATUSES = 60
"""Of one attempt: with more of them, after many interruptions, none are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusStart:
    """Since when SageMaker had it in a secondary status."""

    status: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptor:
    """The job that another makes room for."""

    name: str
    team: str | None = None
    reclaims: bool | None = None
    """True: it takes back what its team had lent; None: it outranks, or an earlier release asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopsInARow:
    """How often in a row a job was stopped for one and the same other job."""

    preemptor: Preemptor
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotState:
    """How it gets on where SageMaker may take its instances away; an on-demand attempt stays as it began."""

    interruptions: int = 0
    stays: Reason | None = None
    """The spot rules would move its job to on-demand instances, and why that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWatch:
    """The alarms of its GPUs, and what they last said."""

    monitored: str | None = None
    """Digest of the alarms as last put; None: none were put yet, or none are wanted."""
    monitor_again_at: datetime | None = None
    """Before that nobody tries again to put its alarms."""
    idle_since: datetime | None = None
    """Its idle alarm is in ALARM since then."""
    stop_due: datetime | None = None
    """When it is to be stopped unless its GPUs work again by then."""
    underused_since: datetime | None = None
    """Its utilization alarm is in ALARM since then."""
    metrics_sought_at: datetime | None = None
    """When somebody looked whether CloudWatch has data of its GPUs, which happens once; None: not yet."""

    @property
    def is_idle(self) -> bool:
        return self.idle_since is not None

    def is_idle_since(self, instant: datetime) -> bool:
        return self.idle_since == instant

    def is_stop_due(self, now: datetime) -> bool:
        return self.stop_due is not None and self.stop_due <= now

    def idle_until(self, instant: datetime) -> timedelta:
        """How long its GPUs have done nothing by then."""
        since = self.idle_since
        return timedelta() if since is None else max(instant - since, timedelta())


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    last: datetime | None = None
    """The newest seen in S3."""
    uncertain_since: datetime | None = None
    """Since then not everything could be read: ``last`` is a lower bound. None: it is the newest."""
    overdue: bool = False
    """Its owner was notified that the newest is too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    at: datetime
    reason: Reason | None = None
    lost: timedelta = timedelta()
    """Of its training, what has to be done again or was for nothing, as far as anybody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What it cost; nothing until it has ended."""

    instance_seconds: int = 0
    """How long its instances ran, all together."""
    cents: int | None = None
    """None until it has ended, or where the price is unknown."""
    by: Mapping[str, int] = field(default_factory=dict)
    """The same by what it was spent on."""
    saved_cents: int = 0
    """What the same instances would have cost more on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One SageMaker training job made for a job."""

    number: int
    training_job_name: str
    shape: Shape
    """What it holds. With InstancePreferences every type SageMaker may take, until it has taken one."""
    max_runtime: timedelta
    """MaxRuntimeInSeconds of this attempt: what is left of the job's."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds, of spot attempts."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds; None: it leaves no warm pool."""
    max_pending: timedelta | None = None
    """MaxPendingTimeInSeconds as sent; None: none was, or nobody noted it."""
    claim: Claim
    progress: Progress | None = None
    """None: nobody has recorded yet that SageMaker has it."""
    trained: timedelta | None = None
    """In status Training: intervals that an interruption ended, at the end all; None before there is one."""
    statuses: tuple[StatusStart, ...] | None = None
    """The secondary statuses that it went through, its end last; None before its end, or not known."""
    preempted_for: Preemptor | None = None
    stop_sent: bool = False
    """SageMaker took our StopTrainingJob."""
    missing_since: datetime | None = None
    """DescribeTrainingJob does not find it since then; None: it was found when last asked for."""
    warm_start: bool | None = None
    """It took over the warm pool it was claimed with; None: it did not, or SageMaker has not said yet."""
    spot: SpotState = SpotState()
    watch: GpuWatch = GpuWatch()
    unmonitored: Reason | None = None
    """Why nobody sees whether its GPUs work although the policy wants it: no alarms, or no data for them."""
    checkpoint: CheckpointState = CheckpointState()
    end: AttemptEnd | None = None
    """None: it runs, as far as anybody knows."""
    bill: Bill = Bill()
    diagnosis: Diagnosis | None = None
    """Of an attempt that failed."""

    @property
    def vector(self) -> Vector:
        return self.shape.vector

    @property
    def capacity_type(self) -> CapacityType:
        return self.shape.capacity_type

    @property
    def training_job_arn(self) -> str | None:
        return self.progress.training_job_arn if self.progress else None

    @property
    def training_since(self) -> datetime | None:
        return self.progress.training_since if self.progress else None

    @property
    def ended_at(self) -> datetime | None:
        return self.end.at if self.end else None

    @property
    def reason(self) -> Reason | None:
        """Why it ended."""
        return self.end.reason if self.end else None

    @property
    def preemptor(self) -> Preemptor | None:
        """The job that it made room for, where that is why it ended; another reason may have come first."""
        ended_so = self.reason is not None and self.reason.code is ReasonCode.PREEMPTION
        return self.preempted_for if ended_so else None

    @property
    def lost(self) -> timedelta:
        return self.end.lost if self.end else timedelta()
