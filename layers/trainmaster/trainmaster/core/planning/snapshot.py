"""Facts that a pass knows about one pool: read once, then decided on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.costs.ledger import MonthAccount, UsageLine, warm_pool_line
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.jobs.attempts import CheckpointState, GpuWatch, Reason
from trainmaster.core.jobs.elastic_state import TrainingProgress
from trainmaster.core.jobs.end_conditions import NOT_YET as FOREVER
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions, ServedStarts
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, Vector, asked_for
from trainmaster.core.jobs.model import JobState, epoch_ms
from trainmaster.core.jobs.reason_codes import Code
from trainmaster.core.jobs.recent_stops import RecentStops
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.refusal_records import AccountLimit, RoleStarts
from trainmaster.core.planning.start_records import StartRecords
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.policy import AtLimit
from trainmaster.core.policy.governance import Watch

Held: TypeAlias = tuple[tuple[Capacity, int], ...]
"""Instances as a key: a plan has fewer of them than jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A queue entry: what ordering and placing need to know, and no more."""

    name: str
    ver: int
    team: str
    state: JobState
    shapes: tuple[Shape, ...]
    priority: int
    score: int
    submitted_at: datetime
    runs_at_most: timedelta
    """MaxRuntimeInSeconds of its next attempt."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds as submitted; only of spot jobs."""
    choice: Choice = Choice.FIRST_FIT
    has_checkpoint: bool = False
    left_spot: bool = False
    """Whether the spot rules moved it to on-demand instances: it never returns to spot."""
    predicted: timedelta | None = None
    """Likely training time of its next attempt; a guess, never a promise."""
    trained: timedelta | None = None
    """Least training time known from earlier attempts; None before it was ever stopped."""
    likely: LikelyLengths | None = None
    """Whole training times of jobs like it."""
    ranked_by: str = ""  # ``PoolPolicy.order_key`` of the order that the score was made with
    not_before: datetime | None = None
    refused: AccountRefusals | None = None  # since AWS last accepted a start of it; then it preempts nobody
    preemptible: bool | None = None  # False: never to be stopped for others
    own_quota: Mapping[str, int] | None = None  # as ``JobSpec.own_quota``
    role: str | None = None  # ``role_digest`` of its RoleArn; None: an earlier release wrote the entry
    turned_down: int | None = None  # refusals in a row of its request or a right; like ``refused``
    futile: FutilePreemptions | None = None
    """Preemptions for it that did not help: it stops no other for a while (``preemption_waits``)."""
    array: str | None = None  # the array that it is a task of
    widths: Widths | None = None  # the counts that it may run with, if it is elastic
    share_ms: int | None = None
    """Shift of the score by its team's past use (``fair_share``); made for one plan, never stored."""
    vector: Vector = field(init=False, compare=False, repr=False)
    """Demand: its best shape, or all that SageMaker may choose from. ``held`` is the same as a key."""
    held: Held = field(init=False, compare=False, repr=False)
    rank: tuple[int, str] = field(init=False, compare=False, repr=False)
    """Its turn among the jobs of its tier."""

    def __post_init__(self) -> None:
        vector = asked_for(self.shapes, self.choice)
        object.__setattr__(self, "vector", vector)
        object.__setattr__(self, "held", tuple(vector.items()))
        object.__setattr__(self, "rank", (self.score + (self.share_ms or 0), self.name))

    @property
    def is_refused(self) -> bool:
        return self.refused is not None or self.turned_down is not None

    @property
    def is_parked(self) -> bool:
        """Whether it waits for an instant or for a person, not for its turn."""
        return self.state is JobState.HELD or self.not_before is not None

    @property
    def parked_until_ms(self) -> int:
        """Its position among those that wait for an instant or for a person."""
        return epoch_ms(self.not_before or FOREVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRun:
    """Time that a job will hold its instances, as far as is known."""

    at_most: timedelta | None = None
    """MaxRuntimeInSeconds of the attempt; None: it was not recorded."""
    ends_by: datetime | None = None
    """When its instances are certain to be free at the latest; None before that is known."""
    predicted: timedelta | None = None
    """Likely training time of this attempt in all; a guess."""
    trained: timedelta | None = None
    """Least training time of the job known from earlier attempts; None in its first."""
    likely: LikelyLengths | None = None
    """Whole training times of jobs like it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that holds its instances. Fields without a note mean what they mean in ``WaitingJob``."""

    name: str
    ver: int
    team: str
    state: JobState
    vector: Vector
    priority: int
    score: int
    claimed_at: datetime
    lease_until: datetime
    training_job_name: str
    known_to_sagemaker: bool  # False until the answer of CreateTrainingJob is recorded
    training_since: datetime | None
    stop_sent: bool
    preemptible: bool
    has_checkpoint: bool
    preemptions: int  # those that count towards ``preemption.max_per_job``
    expected: ExpectedRun = field(default_factory=ExpectedRun)
    checkpoint: CheckpointState = field(default_factory=CheckpointState)
    cents_per_hour: int | None = None  # for all its instances; None where the price is unknown
    warm_key: str | None = None
    """Warm key of the pool that it would leave behind; None: it leaves none."""
    ranked_by: str = ""
    watch: GpuWatch = field(default_factory=GpuWatch)
    unmonitored: Code | None = None  # code of the reason why its GPUs are not monitored
    reuses: str | None = None  # training job whose warm pool it was claimed with, until that is settled
    preempted_for: str | None = None  # name of the job that it was asked to stop for
    own_quota: Mapping[str, int] | None = None  # as ``JobSpec.own_quota``
    array: str | None = None
    widths: Widths | None = None
    progress: TrainingProgress | None = None  # what its program has reported, if it is elastic
    resized_at: datetime | None = None  # when it was last asked to stop for another width
    account_width: int | None = None  # most instances that the account's limits left it
    stops: RecentStops | None = None
    share_ms: int | None = None
    held: Held = field(init=False, compare=False, repr=False)
    rank: tuple[int, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", tuple(self.vector.items()))
        object.__setattr__(self, "rank", (self.score + (self.share_ms or 0), self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionReservation:
    """Instances kept free for the job that others were preempted for."""

    preemptor: str
    vector: Vector
    victims: tuple[str, ...] = ()
    """Victims that earlier releases recorded here; now each victim has ``preempted_for``."""
    until: datetime | None = None
    """Deadline, set once the last victim has ended; then the hold ends by itself."""
    missing: Vector | None = None
    """Instances to be freed by victims that were not asked to stop yet; None: all were asked."""

    @property
    def goes_on(self) -> bool:
        return self.missing is not None and self.until is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """Instances that SageMaker keeps for the next job of the same key. They count as taken."""

    training_job_name: str
    """Training job whose end left it: the name that UpdateTrainingJob and DescribeTrainingJob take."""
    team: str
    vector: Vector
    warm_key: str
    since: datetime
    expires_at: datetime
    """When SageMaker gives it up by itself."""
    releasing: bool = False
    """Whether SageMaker was asked to give it up; it counts until DescribeTrainingJob returns Terminated."""
    because: str | None = None  # the cause of that, in words
    job: str | None = None  # whose attempt left it, and pays for it
    month: str | None = None  # of that attempt's claim, ``YYYY-MM``
    usd_per_hour: Decimal | None = None
    """USD per hour for all its instances; None where the price is unknown."""
    billed_from: datetime | None = None
    """Start of its bill if not ``since``: an attempt was claimed with it and did not land in it."""

    def bill(self, at: datetime, *, retained: timedelta | None = None) -> UsageLine | None:
        """Return its cost up to an instant; None if it is unknown who pays.

        Args:
            at: When it was claimed, or seen to be gone; the bill ends when SageMaker stops keeping it.
            retained: Billed time that SageMaker reports, all in all; None: it reports none.
        """
        if self.job is None or self.month is None:
            return None
        until = min(at, self.expires_at) if retained is None else self.since + retained
        kept = until - (self.billed_from or self.since)
        return warm_pool_line(
            self.job,
            instances=sum(self.vector.values()),
            usd_per_hour=self.usd_per_hour,
            retained=max(kept, timedelta()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """The month of one team's budget."""

    month: str  # ``YYYY-MM``, UTC
    account: MonthAccount
    limit_cents: int
    at_limit: AtLimit
    warned: bool = False  # whether the team was notified that most of it is spent


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """Jobs of one team that ask for the same; the row exists from the first of them on."""

    team: str
    text: str
    """Text of the lane as ``candidates.lane`` returns it."""
    head: str = ""
    """Rank, as text, of the job that it was made for: a hint of how early its jobs are."""
    puts: int = 0
    """Number of jobs ever put into it; in an earlier lane the number that its team counts in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One pool, as read at the start of a pass.

    ``waiting`` holds the first of the pool's order, of each team's and of some lanes (``candidates``), so
    its size depends on teams and bounds, never on how many jobs wait or in how many lanes.
    """

    paused: bool = False
    policy_version: int | None = None
    """Version of the policy that the pool has: claims decided on another one fail. None: it has none yet."""
    goes_on_until: datetime | None = None  # end of the chain of passes that is at the pool; see ``chains``
    recount: Reason | None = None
    """Reason why nothing starts, as the instances in use are unknown; None: they are known."""
    used: Vector = field(default_factory=dict)
    warm: Vector = field(default_factory=dict)  # instances of warm pools, by the counters
    warm_pools: tuple[WarmPool, ...] = ()
    warm_histories: Mapping[str, WarmHistory] = field(default_factory=dict)  # of the keys that have one
    holds: tuple[PreemptionReservation, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    due: tuple[WaitingJob, ...] = ()
    """Parked jobs whose back-off is over."""
    arrays: tuple[Array, ...] = ()  # those that have not ended, and those of the waiting jobs
    running: tuple[RunningJob, ...] = ()
    gone_preemptors: frozenset[str] = frozenset()  # owners of holds that are no longer waiting
    account_limits: Mapping[Capacity, AccountLimit] = field(default_factory=dict)
    role_starts: Mapping[str, RoleStarts] = field(default_factory=dict)  # by ``starts_key``, if AWS refused
    launchers: Mapping[str, str] = field(default_factory=dict)
    """ARNs of the launcher roles of teams; empty where no start was ever refused."""
    last_end: Mapping[Capacity, datetime] = field(default_factory=dict)  # when the type last came free
    served: ServedStarts = field(default_factory=dict)  # of ended attempts; running ones are rows
    start_records: StartRecords = field(default_factory=StartRecords)
    budgets: Mapping[str, BudgetState] = field(default_factory=dict)
    """Budget by team, only of teams that have one."""
    prices: PriceTable = field(default_factory=PriceTable)
    empty_lanes: tuple[LaneRow, ...] = ()
    """Lanes in which no job waits any more: their rows may be deleted."""
    earlier_lanes: tuple[LaneRow, ...] = ()
    """Lanes whose entries are not in the pool's order yet: the release before left them."""
    order_key: str | None = None
    """``PoolPolicy.order_key`` of the order that every job is known to have a score of."""
    past_use: Mapping[str, UseSums] | None = None
    """Past use by team, of attempts that have ended. None: jobs have their ``share_ms``, or need none."""
    spot_max_wait: timedelta = timedelta(hours=6)
    """Time by which MaxWaitTimeInSeconds exceeds MaxRuntimeInSeconds where the planner picks spot."""
    watch: Watch | None = None  # monitoring of GPUs that is wanted; None: it does not matter (a forecast)

    @property
    def blocked(self) -> bool:
        """Whether nothing starts and no job is preempted."""
        return self.paused or self.recount is not None


def known_as(job: WaitingJob | RunningJob, *, to: str) -> str:
    """Name a job as team ``to`` may know it: names stay within their team."""
    return job.name if job.team == to else f"a job of team {job.team}"
