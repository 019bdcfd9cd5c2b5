"""What the table holds, as dictionaries. Counters are kept, not computed, so that they can be wrong."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime

from trainmaster.adapters.dynamodb.layout import Key
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.costs.ledger import PreemptionEntry
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.history.past_records import CapacityChange, Ending, PastEvent, PastWarmPool
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.end_conditions import Dependent
from trainmaster.core.jobs.futile_preemptions import ServedStart, SizeClass
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.plan_reasons import ToldReasons
from trainmaster.core.planning.refusal_records import AccountLimit, RoleStarts
from trainmaster.core.planning.snapshot import PreemptionReservation, WarmPool
from trainmaster.core.planning.start_records import StartRecords
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.records import Alias, HistoryLine, StoredPolicy, SubmissionFreeze
from trainmaster.core.rules.violation import ViolationRecord

Record = Ending | PastWarmPool | CapacityChange | PastEvent
NO_POLICY = StoredPolicy(revision=0, version=0, paused=False, document={})


@dataclass(slots=True)
class PoolRows:
    """Counters of one pool, and what hangs on them."""

    policy_version: int | None = None
    goes_on_until: datetime | None = None
    order_key: str | None = None
    used: Counter[Capacity] = field(default_factory=Counter)
    warm: Counter[Capacity] = field(default_factory=Counter)
    holds: dict[str, PreemptionReservation] = field(default_factory=dict)
    """By preemptor."""
    warm_pools: dict[str, WarmPool] = field(default_factory=dict)
    """By training-job name."""
    warm_histories: dict[str, WarmHistory] = field(default_factory=dict)
    """By warm key."""
    limits: dict[Capacity, AccountLimit] = field(default_factory=dict)
    role_starts: dict[str, RoleStarts] = field(default_factory=dict)
    last_end: dict[Capacity, datetime] = field(default_factory=dict)
    served: dict[SizeClass, ServedStart] = field(default_factory=dict)
    start_records: StartRecords = field(default_factory=StartRecords)
    past_use: dict[str, UseSums] = field(default_factory=dict)
    """By team."""
    run_times: dict[tuple[str, str], RunTimes] = field(default_factory=dict)
    learned: dict[tuple[str, str], LearnedRow] = field(default_factory=dict)
    """By team and key of ``Traits.keys``; by the key alone where all teams share it."""
    """By (team, lane)."""
    speeds: defaultdict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Runs as rows keep them, the newest first, by team and shape."""
    submissions: Counter[tuple[str, datetime]] = field(default_factory=Counter)
    """By team and minute."""
    history_since: datetime | None = None
    missed_warm_pools: int = 0
    told: set[str] = field(default_factory=set)
    """Subjects that operators were notified of."""
    told_reasons: ToldReasons = field(default_factory=ToldReasons)
    freeze: SubmissionFreeze | None = None
    """The last one, whether it is over or not."""


@dataclass(slots=True)
class Month:
    """What one team has committed and spent, in cents."""

    committed: int = 0
    spent: int = 0
    warned: bool = False
    jobs: dict[str, "Usage"] = field(default_factory=dict)
    takings: list[PreemptionEntry] = field(default_factory=list)


@dataclass(slots=True)
class Usage:
    instance_seconds: int = 0
    unpriced: int = 0
    saved: int = 0
    warm_saved: int = 0
    by: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Tables:
    jobs: dict[str, Job] = field(default_factory=dict)
    changed_at: dict[str, datetime] = field(default_factory=dict)
    """By job."""
    requests: dict[str, bytes] = field(default_factory=dict)
    messages: dict[tuple[str, str], OutboxMessage] = field(default_factory=dict)
    """By pool and id."""
    violations: dict[tuple[datetime, str], ViolationRecord] = field(default_factory=dict)
    """By instant and training-job name."""
    aliases: dict[str, Alias] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    """By (entry id, number)."""
    lines: dict[str, list[HistoryLine]] = field(default_factory=lambda: defaultdict(list))
    """By entry id."""
    pools: dict[str, PoolRows] = field(default_factory=lambda: defaultdict(PoolRows))
    months: dict[tuple[str, str], Month] = field(default_factory=lambda: defaultdict(Month))
    """By (team, YYYY-MM)."""
    spot_days: dict[tuple[str, date], SpotDay] = field(default_factory=dict)
    """By instance type and day."""
    history: dict[Key, Record] = field(default_factory=dict)
    """What is remembered, under the keys of the table."""
    waits: Counter[tuple[str, datetime, str, Capacity]] = field(default_factory=Counter)
    """How many more wait, by pool, minute, team and capacity."""
    dependents: dict[str, dict[str, Dependent]] = field(default_factory=lambda: defaultdict(dict))
    """By entry id of the parent and name of the child."""
    arrays: dict[str, Array] = field(default_factory=dict)
    array_requests: dict[str, bytes] = field(default_factory=dict)
    graph_version: int = 0
    notified_roots: set[tuple[str, str]] = field(default_factory=set)
    """Entry ids of roots, and teams that were notified of their end."""
    policy: StoredPolicy = NO_POLICY
    revisions: dict[int, StoredPolicy] = field(default_factory=dict)
    plans: dict[str, PlanSeen] = field(default_factory=dict)


def lane_of(job: Job) -> str:
    """Jobs of a team with an equal lane wait in one line."""
    return lane(job.shapes, job.spec.choice)
