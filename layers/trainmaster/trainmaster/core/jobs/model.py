"""What a job is: its states, the legal steps between them, its attempts.

A *job* is what the user submitted; an *attempt* is one SageMaker training job made for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.jobs.attempts import Attempt, Reason, StopsInARow
from trainmaster.core.jobs.conditions import Dependencies
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Choice, Shape, Vector, asked_for, on_demand
from trainmaster.core.jobs.start_troubles import StartTrouble


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


def epoch_ms(instant: datetime) -> int:
    """Whole milliseconds since 1970; exact, unlike timestamp()."""
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class NotLiveError(ValueError):
    """A step for a job that holds instances, of one that holds none: our own mistake."""


class IllegalTransitionError(ValueError):
    """A step TRANSITIONS does not have: our own mistake."""


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
    """SHA-256 (hex) of the canonical request: the identity of a repeated request."""
    key_hash: str | None = None
    """SHA-256 (hex) of the idempotency key of the submission; None: it had none, or an earlier release
    stored it."""
    choice: Choice = Choice.FIRST_FIT
    checkpoint_uri: str | None = None
    """CheckpointConfig.S3Uri; None: a stop loses everything."""
    keep_alive: timedelta | None = None
    """KeepAlivePeriodInSeconds as asked for, cut to the pool's."""
    predicted: timedelta | None = None
    """Mean of the team's last two run times in this shape, when it was submitted."""
    learned_in: tuple[str, ...] | None = None
    """``Traits.keys``: the histograms that its run time is added to, the most specific first.
    None: an earlier release submitted it."""
    likely: LikelyLengths | None = None
    """What they said when it was submitted; None: nothing yet."""
    retries: int | None = None
    """Most retries of failures that its owner wants; None: as many as the policy allows."""
    halves_batch: bool = False
    """Its owner lets a retry after running out of GPU memory halve the batch."""
    role: str | None = None
    """``role_digest`` of its RoleArn; None: an earlier release submitted it, or it bypassed the queue."""
    adopted: bool = False
    """It bypassed the queue: SageMaker ran it before we knew of it."""
    own_quota: Mapping[str, int] | None = None
    """Nominal quota of its team by instance type, as promised when it was submitted, of a job that cannot be
    stopped and therefore starts within it alone; None: it may borrow (``planning.loans``)."""

    @property
    def has_checkpoint(self) -> bool:
        return self.checkpoint_uri is not None

    @property
    def vector(self) -> Vector:
        """What it asked for as submitted; with InstancePreferences every type there is a choice of."""
        return asked_for(self.shapes, self.choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comebacks:
    """What it came back from, and as what."""

    retries: int = 0
    """Attempts made because one before failed; what AWS is to blame for at the start is not counted."""
    productive: timedelta = timedelta()
    """In status Training since the last failure that was charged as a retry, over ended attempts."""
    halvings: int = 0
    """How often the batch was halved because the GPUs ran out of memory."""
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters of its next attempts that are not as submitted, since the batch was halved."""
    idle_requeues: int = 0
    """How often it was stopped while its GPUs did nothing, and came back."""
    reclaims: int | None = None
    """Preemptions among ``Job.preemptions`` by which a team took back what it had lent; None: none of them.
    They do not count towards ``preemption.max_per_job``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRecord:
    """Of ended spot attempts."""

    interruptions: int = 0
    trained: timedelta = timedelta()
    """In status Training."""
    elapsed: timedelta = timedelta()
    """From claim to end."""
    left: bool = False
    """The spot rules moved the job: it asks for on-demand instances from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """On ended attempts."""

    wasted: Mapping[str, int] = field(default_factory=dict)
    """Seconds of training lost, by cause."""
    startups: Mapping[str, int] | None = None
    """Seconds from claim to stop of attempts that were stopped before they trained, by cause; None: none."""
    cents: int = 0
    """What they cost, as far as prices are known."""
    unpriced: bool = False
    """One of them had no known price."""

    def all_wasted(self) -> dict[str, int]:
        """Seconds of training and of start-ups that were lost, by cause."""
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
    stopped_for: StopsInARow | None = None
    """The job that it last made room for, and how often in a row; None: it never did since that is noted."""
    made_room_for: int | None = None
    """Number of the attempt that other jobs were last stopped for; None: none, or it came to nothing."""
    futile: FutilePreemptions | None = None
    """Preemptions for it that did not help, since an attempt of it last trained; None: none."""
    checkpointed: timedelta = timedelta()
    """Training time of earlier attempts that is safe in checkpoints."""
    extensions: int = 0
    """Attempts that got more run time than was left of the job's, so that they get anywhere at all."""
    starts: StartTrouble = field(default_factory=StartTrouble)
    comebacks: Comebacks = Comebacks()
    spot: SpotRecord = SpotRecord()
    spent: Spent = Spent()
    after: Dependencies | None = None
    """The jobs that it waits for, or waited for; None: none."""
    eligible_at: datetime | None = None
    """When the last of its conditions held; None: it waits for them, or never had any."""
    has_dependents: bool | None = None
    """Other jobs wait for its end, or did; None: none ever did."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The forms it can run in from now on, the best first."""
        return on_demand(self.spec.shapes) if self.spot.left else self.spec.shapes

    @property
    def max_wait(self) -> timedelta | None:
        """As submitted; None once it asks for on-demand instances."""
        return None if self.spot.left else self.spec.max_wait

    @property
    def vector(self) -> Vector:
        """What it holds, or asks for while it waits."""
        return self.live.vector if self.live else asked_for(self.shapes, self.spec.choice)

    @property
    def live_attempt(self) -> Attempt:
        """Of a job that is live. Raises NotLiveError."""
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
    def waits_for_others(self) -> bool:
        """Its conditions do not all hold yet, so it is in no queue, held or not."""
        return self.after is not None and self.eligible_at is None and not self.is_final

    @property
    def queued_since(self) -> datetime | None:
        """When its time in the queue began; None: it waits for other jobs."""
        return None if self.waits_for_others else self.eligible_at or self.spec.submitted_at

    @property
    def is_parked(self) -> bool:
        """Waits for an instant, a person or other jobs, not for its turn."""
        return self.state is JobState.HELD or (self.is_waiting and self.not_before is not None)

    def moved_to(self, state: JobState) -> "Job":
        """The job after one legal step. Raises IllegalTransitionError."""
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransitionError(f"job {self.name!r} cannot go from {self.state} to {state}")
        return replace(self, state=state)
