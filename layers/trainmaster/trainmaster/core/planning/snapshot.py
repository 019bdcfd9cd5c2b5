"""What a pass knows about one pool: read once, then decided on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from trainmaster.core.costs.ledger import MonthAccount, UsageLine, warm_pool_line
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.jobs.attempts import CheckpointState, GpuWatch, Reason
from trainmaster.core.jobs.conditions import NOT_YET
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions, ServedStarts
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, Vector, asked_for
from trainmaster.core.jobs.model import JobState, epoch_ms
from trainmaster.core.jobs.reason_codes import Code
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.refusal_records import AccountLimit, RoleStarts
from trainmaster.core.policy import AtLimit
from trainmaster.core.policy.governance import Watch

Held: TypeAlias = tuple[tuple[Capacity, int], ...]
"""Instances as a key: a plan has fewer of them than jobs."""
FOREVER = NOT_YET  # until then a held job is parked


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
    """MaxWaitTimeInSeconds as submitted, of spot jobs."""
    choice: Choice = Choice.FIRST_FIT
    has_checkpoint: bool = False
    left_spot: bool = False
    """The spot rules moved it to on-demand instances: nothing puts it on spot again."""
    predicted: timedelta | None = None
    """How long its next attempt is likely to train; a guess, never a promise."""
    trained: timedelta | None = None
    """How long it is known to train at least, from earlier attempts; None before it was ever stopped."""
    likely: LikelyLengths | None = None
    """How long jobs like it train in all."""
    ranked_by: str = ""
    """``PoolPolicy.order_key`` of the order the score was made with."""
    not_before: datetime | None = None
    refused: AccountRefusals | None = None
    """While AWS has taken no start of it since, it neither preempts nor reserves."""
    preemptible: bool | None = None  # False: never to be stopped for others
    own_quota: Mapping[str, int] | None = None  # as ``JobSpec.own_quota``
    role: str | None = None
    """``role_digest`` of its RoleArn; None: an earlier release wrote the entry."""
    turned_down: int | None = None
    """Refusals in a row of what it asks for, or of a right that it takes; as for ``refused``."""
    futile: FutilePreemptions | None = None
    """Preemptions for it that did not help: it stops nobody for a while (``preemption_waits``)."""
    share_ms: int | None = None
    """What its team's past use adds to the score (``fair_share``); made for one plan, never stored."""
    vector: Vector = field(init=False, compare=False, repr=False)
    """What it asks for: its best shape, or all that SageMaker may choose from. ``held``: as a key."""
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
        """Waits for an instant or for a person, not for its turn."""
        return self.state is JobState.HELD or self.not_before is not None

    @property
    def parked_until_ms(self) -> int:
        """Where it stands among those that wait for an instant or for a person."""
        return epoch_ms(self.not_before or FOREVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRun:
    """How long a job that holds its instances will hold them, as far as anybody knows."""

    at_most: timedelta | None = None
    """MaxRuntimeInSeconds of the attempt; None: nobody noted it."""
    ends_by: datetime | None = None
    """When its instances are certain to be free at the latest; None before that is known."""
    predicted: timedelta | None = None
    """How long this attempt is likely to train in all; a guess."""
    trained: timedelta | None = None
    """How long the job is known to train at least, from earlier attempts; None in its first."""
    likely: LikelyLengths | None = None
    """How long jobs like it train in all."""


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
    cents_per_hour: int | None = None
    """Of all its instances; None where the price is unknown."""
    warm_key: str | None = None
    """Of the warm pool it would leave behind; None: none."""
    ranked_by: str = ""
    watch: GpuWatch = field(default_factory=GpuWatch)
    unmonitored: Code | None = None
    """Code of the reason why nobody sees whether its GPUs work."""
    reuses: str | None = None
    """The training job whose warm pool it was claimed with, until SageMaker has said what became of it."""
    preempted_for: str | None = None
    """Once it was asked to stop for another job: that one's name."""
    own_quota: Mapping[str, int] | None = None  # as ``JobSpec.own_quota``
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
    """Only in what earlier releases placed; now each victim says for whom it was asked to stop."""
    until: datetime | None = None
    """Set once the last victim has ended; then the hold dies by itself."""
    missing: Vector | None = None
    """What victims are to free that were not asked to stop yet; None: all were."""

    @property
    def goes_on(self) -> bool:
        return self.missing is not None and self.until is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """Instances that SageMaker keeps for the next job of the same key. They count as taken."""

    training_job_name: str
    """Whose end left it behind: the name that UpdateTrainingJob and DescribeTrainingJob take."""
    team: str
    vector: Vector
    warm_key: str
    since: datetime
    expires_at: datetime
    """When SageMaker gives it up by itself."""
    releasing: bool = False
    """SageMaker was asked to give it up; still counted until DescribeTrainingJob says Terminated."""
    job: str | None = None
    """Whose attempt left it, and pays for it."""
    month: str | None = None
    """``YYYY-MM`` of that attempt's claim."""
    usd_per_hour: Decimal | None = None
    """Of all its instances; None where the price is unknown."""
    billed_from: datetime | None = None
    """Where that is not ``since``: an attempt was claimed with it and did not land in it."""

    def bill(self, at: datetime, *, retained: timedelta | None = None) -> UsageLine | None:
        """What it has cost by then; None where nobody is known to pay.

        Args:
            at: When it was claimed, or seen to be gone; nobody is billed for longer than SageMaker keeps it.
            retained: What SageMaker says that it is billed for, all in all; None: it does not say.
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
    """One team's month."""

    month: str  # ``YYYY-MM``, UTC
    account: MonthAccount
    limit_cents: int
    at_limit: AtLimit
    warned: bool = False
    """The team was notified that most of it is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """Jobs of one team that ask for the same thing; the row is there from the first of them on."""

    team: str
    text: str
    """``candidates.lane``."""
    head: str = ""
    """Rank, as text, of the job that it was made for: a hint of how early its jobs are."""
    puts: int = 0
    """How often a job was put into it; of an earlier lane what its team counts in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One pool, as read at the start of a pass.

    ``waiting`` holds the first of the pool's order, of each team's and of some lanes (``candidates``), so
    its size depends on teams and bounds, never on how many jobs wait or in how many lanes.
    """

    paused: bool = False
    policy_version: int | None = None
    """That the pool has heard of: claims decided on another policy fail. None: it has heard of none."""
    goes_on_until: datetime | None = None
    """Passes in a row are at the pool; see ``chains``."""
    recount: Reason | None = None
    """Why nothing starts: what is used is not known. None: it is."""
    used: Vector = field(default_factory=dict)
    warm: Vector = field(default_factory=dict)
    """Instances of warm pools, by the counters."""
    warm_pools: tuple[WarmPool, ...] = ()
    holds: tuple[PreemptionReservation, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    due: tuple[WaitingJob, ...] = ()
    """Parked jobs whose back-off is over."""
    running: tuple[RunningJob, ...] = ()
    gone_preemptors: frozenset[str] = frozenset()
    """Owners of holds that are no longer waiting."""
    account_limits: Mapping[Capacity, AccountLimit] = field(default_factory=dict)
    role_starts: Mapping[str, RoleStarts] = field(default_factory=dict)
    """By ``starts_key``, of roles that AWS refused starts with."""
    launchers: Mapping[str, str] = field(default_factory=dict)
    """ARNs of the launcher roles of teams; none where no start was ever refused."""
    last_end: Mapping[Capacity, datetime] = field(default_factory=dict)
    """When instances of the type last came free."""
    served: ServedStarts = field(default_factory=dict)
    """Of attempts that have ended; those that run say it themselves."""
    budgets: Mapping[str, BudgetState] = field(default_factory=dict)
    """By team, of those with a budget."""
    prices: PriceTable = field(default_factory=PriceTable)
    empty_lanes: tuple[LaneRow, ...] = ()
    """Lanes in which nobody waits any more: their rows may go."""
    earlier_lanes: tuple[LaneRow, ...] = ()
    """Lanes whose entries are not in the pool's order yet: the release before left them."""
    order_key: str | None = None
    """``PoolPolicy.order_key`` of the order that every job is known to have a score of."""
    past_use: Mapping[str, UseSums] | None = None
    """By team, of attempts that have ended. None: jobs have their ``share_ms`` already, or need none."""
    spot_max_wait: timedelta = timedelta(hours=6)
    """What MaxWaitTimeInSeconds is above MaxRuntimeInSeconds where the planner picks spot."""
    watch: Watch | None = None
    """How GPUs are to be watched; None: that is not asked (a forecast)."""

    @property
    def blocked(self) -> bool:
        """Nothing starts and nobody is preempted."""
        return self.paused or self.recount is not None


def known_as(job: WaitingJob | RunningJob, *, to: str) -> str:
    """A job as team ``to`` may hear of it: names stay within their team."""
    return job.name if job.team == to else f"a job of team {job.team}"
