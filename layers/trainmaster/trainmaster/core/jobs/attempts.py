"""An attempt: one SageMaker training job made for a job, in parts of what is set together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.core.durations.work_speeds import WorkSpeed
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.instances import CapacityType, Shape, Vector
from trainmaster.core.jobs.reason_codes import Code, ReasonCode
from trainmaster.core.jobs.recent_stops import RecentStops


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Reason why a job waits, was stopped or ended: a stable code for programs, a sentence for people."""

    code: Code
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The taking of an attempt's instances, and the rate at which they were taken."""

    at: datetime
    lease_until: datetime
    """End of the lease: until then the pass that claimed the job may still be about to create the training
    job."""
    reuses: str | None = None
    """Training job whose warm pool it was claimed with; None without one, or once SageMaker has reported
    its use."""
    cold_startup: timedelta | None = None
    """Usual start-up without the warm pool that it was claimed with; None: without one, or not known."""
    usd_per_hour: Decimal | None = None
    """USD per hour for all its instances, as priced at the claim; None where the price is unknown."""
    reserved_cents: int = 0
    """Worst case in cents, counted against the team's month until the bill is known."""
    month: str | None = None
    """Month that it is charged to, ``YYYY-MM`` (UTC)."""
    half_life: timedelta | None = None
    """Half-life with which its use is forgotten in the fair share; None: ``past_use.HALF_LIFE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """SageMaker's report about the attempt's training job."""

    training_job_arn: str
    status: str | None = None
    secondary_status: str | None = None
    training_since: datetime | None = None
    """When it first reached Training; None before that."""


MOST_STATUSES = 60
"""Most statuses kept of one attempt; if there are more, after many interruptions, none is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusStart:
    """Start of a secondary status of a training job."""

    status: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptor:
    """The job that another one is stopped for."""

    name: str
    team: str | None = None
    reclaims: bool | None = None
    """True if it takes back what its team had lent; None if it outranks, or an earlier release asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopsInARow:
    """Count of the stops in a row of a job for one and the same other job."""

    preemptor: Preemptor
    count: int
    recent: RecentStops | None = None
    """Stops for whatever job within a day; None if an earlier release recorded the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotState:
    """State of an attempt whose instances SageMaker may take away; on demand it stays as it began."""

    interruptions: int = 0
    stays: Reason | None = None
    """Reason why it stays on spot although the spot rules would move its job to on-demand instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWatch:
    """State of the alarms on its GPUs."""

    monitored: str | None = None
    """Digest of the alarms as last put; None: none were put yet, or none are wanted."""
    monitor_again_at: datetime | None = None
    """Instant before which putting its alarms is not retried."""
    idle_since: datetime | None = None
    """Instant since which its idle alarm is in ALARM."""
    stop_due: datetime | None = None
    """When it is to be stopped unless its GPUs work again by then."""
    underused_since: datetime | None = None
    """Instant since which its utilization alarm is in ALARM."""
    underused_stop_due: datetime | None = None
    """When it is to be stopped unless its GPUs are used as the policy expects by then."""
    metrics_sought_at: datetime | None = None
    """When CloudWatch was checked for data of its GPUs, which happens once; None: not yet."""

    @property
    def is_idle(self) -> bool:
        return self.idle_since is not None

    def is_idle_since(self, instant: datetime) -> bool:
        return self.idle_since == instant

    def is_stop_due(self, now: datetime) -> bool:
        return any(due is not None and due <= now for due in (self.stop_due, self.underused_stop_due))

    def idle_until(self, instant: datetime) -> timedelta:
        """Return how long its GPUs have been idle at an instant; 0 if they are not."""
        since = self.idle_since
        return timedelta() if since is None else max(instant - since, timedelta())


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    last: datetime | None = None
    """When the newest checkpoint seen in S3 was written."""
    uncertain_since: datetime | None = None
    """Instant since which not everything could be read: ``last`` is a lower bound. None: it is the newest."""
    overdue: bool = False
    """Whether its owner was notified that the newest checkpoint is too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossWatch:
    """Facts that the rule on the loss needs of an attempt, and what it has found."""

    lowest: str | None = None
    """Lowest level of the loss so far, as text, as rows hold no infinite or tiny numbers; None: none yet."""
    lowest_at: datetime | None = None
    """When that level was seen first."""
    finding: Reason | None = None
    """Breach of the rule, with the value and the step at which it was seen first; None: there is none."""
    stop_due: datetime | None = None
    """When the job is to be stopped unless its loss recovers by then; None: it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    at: datetime
    reason: Reason | None = None
    lost: timedelta = timedelta()
    """Training that must be repeated or was useless, as far as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Cost of the attempt; 0 until it has ended."""

    instance_seconds: int = 0
    """Seconds that its instances ran, summed over instances."""
    cents: int | None = None
    """Cost in cents; None until it has ended, or where the price is unknown."""
    by: Mapping[str, int] = field(default_factory=dict)
    """The same cents by what they were spent on."""
    saved_cents: int = 0
    """Cents that the same instances would have cost more on demand."""
    warm_saved_cents: int | None = None
    """Cents that a usual start-up without its warm pool would have cost more; None: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One SageMaker training job made for a job."""

    number: int
    training_job_name: str
    shape: Shape
    """Instances that it holds. With InstancePreferences every type SageMaker may take, until it has taken
    one."""
    max_runtime: timedelta
    """MaxRuntimeInSeconds of this attempt: the rest of the job's."""
    plan_arn: str | None = None
    """The training plan whose instances it runs on; None: it runs on none, or bypassed the queue."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds; only of spot attempts."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds; None: it leaves no warm pool."""
    max_pending: timedelta | None = None
    """MaxPendingTimeInSeconds as sent; None: none was sent, or it was not recorded."""
    claim: Claim
    progress: Progress | None = None
    """SageMaker's last report; None: it is not yet recorded that SageMaker has the training job."""
    trained: timedelta | None = None
    """Time in status Training: intervals that an interruption ended, at the end all; None before there is
    one."""
    statuses: tuple[StatusStart, ...] | None = None
    """Secondary statuses that it went through, its end last; None before its end, or if not known."""
    speed: WorkSpeed | None = None
    """Samples or tokens a second as its program printed them last; None before its end, or if not known."""
    preempted_for: Preemptor | None = None
    stop_sent: bool = False
    """Whether SageMaker accepted our StopTrainingJob."""
    missing_since: datetime | None = None
    """Instant since which DescribeTrainingJob does not find it; None: the last call found it."""
    warm_start: bool | None = None
    """Whether it took over the warm pool it was claimed with; None: it did not, or that is not known yet."""
    spot: SpotState = SpotState()
    watch: GpuWatch = GpuWatch()
    unmonitored: Reason | None = None
    """Reason why its GPUs are not monitored although the policy wants it: no alarms, or no data for them."""
    checkpoint: CheckpointState = CheckpointState()
    loss: LossWatch | None = None
    """State of its loss; None: the policy has no rule on it, or it was not read yet."""
    end: AttemptEnd | None = None
    """End of the attempt; None: it runs, as far as is known."""
    bill: Bill = Bill()
    diagnosis: Diagnosis | None = None
    """Diagnosis of the failure; None if it did not fail."""

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
        """Reason why it ended; None while it runs."""
        return self.end.reason if self.end else None

    @property
    def preemptor(self) -> Preemptor | None:
        """The job that it was stopped for; None if it ended for another reason."""
        ended_so = self.reason is not None and self.reason.code is ReasonCode.PREEMPTION
        return self.preempted_for if ended_so else None

    @property
    def lost(self) -> timedelta:
        return self.end.lost if self.end else timedelta()
