"""The model of a job: what was submitted, its attempts, and what became of it. ``states`` has its states.

A *job* is what the user submitted; an *attempt* is one SageMaker training job made for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.jobs.attempts import Attempt, Reason, StopsInARow
from trainmaster.core.jobs.elastic_state import ElasticState, startable
from trainmaster.core.jobs.end_conditions import Dependencies
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.hold_open import HoldOpen
from trainmaster.core.jobs.index_sets import TaskOf
from trainmaster.core.jobs.instances import Choice, Shape, Vector, asked_for, on_demand
from trainmaster.core.jobs.start_troubles import StartTrouble
from trainmaster.core.jobs.states import FINAL, LIVE, TRANSITIONS, WAITING, IllegalTransitionError, JobState
from trainmaster.core.jobs.widths import Widths

__all__ = (
    "FINAL",
    "LIVE",
    "WAITING",
    "Comebacks",
    "Job",
    "JobSpec",
    "JobState",
    "NotLiveError",
    "Spent",
    "SpotRecord",
    "epoch_ms",
)


def epoch_ms(instant: datetime) -> int:
    """Return whole milliseconds since 1970; exact, unlike timestamp()."""
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class NotLiveError(ValueError):
    """A step that needs a live attempt was tried on a job without one: a bug of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job as submitted; it never changes."""

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
    """Time from creation to the end, waiting included; only of managed spot."""
    body_hash: str
    """SHA-256 (hex) of the canonical request, by which a repeated request is recognised."""
    key_hash: str | None = None
    """SHA-256 (hex) of its idempotency key; None: it had none, or an earlier release stored it."""
    choice: Choice = Choice.FIRST_FIT
    checkpoint_uri: str | None = None
    """CheckpointConfig.S3Uri; None: a stop loses everything."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds as requested, cut to the pool's."""
    predicted: timedelta | None = None
    """Mean of the team's last two run times in this shape, when it was submitted."""
    learned_in: tuple[str, ...] | None = None
    """``Traits.keys``, the most specific first; None: an earlier release submitted it."""
    work_kind: str | None = None
    """``Traits.work_kind``; None: an earlier release submitted it, or it bypassed the queue."""
    likely: LikelyLengths | None = None
    """Run times in those histograms when it was submitted; None: they were empty."""
    retries: int | None = None
    """Most retries of failures that its owner wants; None: as many as the policy allows."""
    halves_batch: bool = False
    """Whether its owner lets a retry after running out of GPU memory halve the batch."""
    role: str | None = None
    """``role_digest`` of its RoleArn; None: an earlier release submitted it, or it bypassed the queue."""
    adopted: bool = False  # it bypassed the queue: SageMaker ran it before it became a job
    own_quota: Mapping[str, int] | None = None
    """Quota when it was submitted, within which alone it starts; None: it may borrow (``planning.loans``)."""
    array: TaskOf | None = None  # None: it was submitted by itself
    widths: Widths | None = None
    """Instance counts that it may run with, a shape for each; None: it is not elastic."""
    hold_open: HoldOpen | None = None  # None: its container waits for no visitor
    measured: str | None = None
    """Why its shapes are in this order; None: their author has listed them."""
    set_by_pool: tuple[str, ...] | None = None
    """Fields of the request that its pool has changed, such as ``RoleArn``; None: none."""

    @property
    def has_checkpoint(self) -> bool:
        return self.checkpoint_uri is not None

    @property
    def vector(self) -> Vector:
        """Instances that it asked for as submitted; of InstancePreferences all types."""
        return asked_for(self.shapes, self.choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comebacks:
    """A job's returns to the queue, by cause, and how they changed it."""

    retries: int = 0
    """Attempts made because one before failed; failures at the start that AWS is to blame for are not
    counted."""
    productive: timedelta = timedelta()
    """Time in status Training since the last failure that was charged as a retry, over ended attempts."""
    halvings: int = 0
    """Number of times that the batch was halved because the GPUs ran out of memory."""
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters of its next attempts that differ from the submitted ones, since the batch was
    halved."""
    idle_requeues: int = 0
    """Number of times that it was stopped because its GPUs were idle or underused, and requeued."""
    reclaims: int | None = None
    """Preemptions among ``Job.preemptions`` by which a team took back what it had lent; None: none of them.
    They do not count towards ``preemption.max_per_job``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecord:
    """Sums over a job's ended spot attempts."""

    interruptions: int = 0
    trained: timedelta = timedelta()
    """Time in status Training."""
    elapsed: timedelta = timedelta()
    """Time from claim to end."""
    left: bool = False
    """Whether the spot rules moved the job: it asks for on-demand instances from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Expenses of a job's ended attempts."""

    wasted: Mapping[str, int] = field(default_factory=dict)
    """Seconds of training lost, by cause."""
    startups: Mapping[str, int] | None = None
    """Seconds from claim to stop of attempts that were stopped before they trained, by cause; None: none."""
    cents: int = 0
    """Cost in cents, as far as prices are known."""
    unpriced: bool = False
    """Whether one of them had no known price."""

    def all_wasted(self) -> dict[str, int]:
        """Return the seconds of training and of start-ups that were lost, by cause."""
        lost = dict(self.wasted)
        for cause, seconds in (self.startups or {}).items():
            lost[cause] = lost.get(cause, 0) + seconds
        return lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The unit of work, as the table keeps it."""

    spec: JobSpec
    state: JobState
    priority: int
    score: int
    """Sort key of its turn in the queue, lower is earlier: ``PoolPolicy.score``."""
    ranked_by: str = ""
    """``PoolPolicy.order_key`` of the order that the score was made with."""
    ver: int = 0
    """Version; it rises with each write, and every write is conditional on it."""
    attempt: int = 0
    live: Attempt | None = None
    """The attempt that holds the slot; None while waiting and when final."""
    not_before: datetime | None = None
    """End of a back-off; the job is parked until then."""
    waiting: Reason | None = None
    reason: Reason | None = None
    """Reason why it ended, or why it is being stopped."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    preemptions: int = 0
    stopped_for: StopsInARow | None = None
    """The job that it was last stopped for, and how often in a row; None: it never was, as far as
    recorded."""
    made_room_for: int | None = None
    """Number of the attempt that other jobs were last stopped for; None: there is none, or it came to
    nothing."""
    futile: FutilePreemptions | None = None
    """Preemptions for it that did not help, since an attempt of it last trained; None: none."""
    checkpointed: timedelta = timedelta()
    """Training time of earlier attempts that is safe in checkpoints; an elastic job's as if it had all
    been at its largest width."""
    extensions: int = 0
    """Number of attempts that got more run time than was left of the job's, as too little would be
    useless."""
    starts: StartTrouble = field(default_factory=StartTrouble)
    comebacks: Comebacks = Comebacks()
    spot: SpotRecord = SpotRecord()
    spent: Spent = Spent()
    after: Dependencies | None = None
    """The jobs that it waits for, or waited for; None: none."""
    eligible_at: datetime | None = None
    """When the last of its conditions held; None: it waits for them, or never had any."""
    has_dependents: bool | None = None  # other jobs wait for its end, or did; None: none ever did
    elastic: ElasticState | None = None
    """State of an elastic job; None: it is not elastic, or has had no attempt."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The forms it can run in from now on, the best first."""
        shapes = on_demand(self.spec.shapes) if self.spot.left else self.spec.shapes
        if self.spec.widths is None or self.elastic is None:
            return shapes
        left = self.spec.max_runtime - self.checkpointed
        return startable(shapes, self.spec.widths, self.elastic, left)

    @property
    def max_wait(self) -> timedelta | None:
        """MaxWaitTimeInSeconds as submitted; None once it asks for on-demand instances."""
        return None if self.spot.left else self.spec.max_wait

    @property
    def vector(self) -> Vector:
        """Instances that it holds, or asks for while it waits."""
        return self.live.vector if self.live else asked_for(self.shapes, self.spec.choice)

    @property
    def live_attempt(self) -> Attempt:
        """The attempt of a job that is live.

        Raises:
            NotLiveError: The job holds no instances.
        """
        if self.live is None:
            raise NotLiveError(f"{self.name} has no live attempt")
        return self.live

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
    def changes_width(self) -> bool:
        """Tell whether it was stopped to come back at another width, with room that is kept for it."""
        return self.elastic is not None and self.elastic.wanted is not None

    @property
    def awaits_reservation(self) -> bool:
        """Tell whether it may still start on instances that are reserved for it."""
        return self.is_waiting or (self.state is JobState.PREEMPTING and self.changes_width)

    @property
    def waits_for_others(self) -> bool:
        """Its conditions do not all hold yet, so it is in no queue, held or not."""
        return self.after is not None and self.eligible_at is None and not self.is_final

    @property
    def queued_since(self) -> datetime | None:
        """When its time in the queue began; None: it waits for other jobs."""
        return None if self.waits_for_others else self.eligible_at or self.spec.submitted_at

    @property
    def is_parked(self) -> bool:
        """Whether it waits for an instant, a person or other jobs, not for its turn."""
        return self.state is JobState.HELD or (self.is_waiting and self.not_before is not None)

    def moved_to(self, state: JobState) -> "Job":
        """Return the job after one legal step.

        Raises:
            IllegalTransitionError: ``TRANSITIONS`` does not have the step.
        """
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransitionError(f"job {self.name!r} cannot go from {self.state} to {state}")
        return replace(self, state=state)
