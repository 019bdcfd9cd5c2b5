"""What is written and read: changes of jobs with their conditions, and what the table says."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from trainmaster.core.durations.learned import LearnedRow
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.fair_share import TeamShare, team_shares
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.refusal_records import AccountLimit, RoleChange, RoleStarts
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob, WarmPool
from trainmaster.core.policy import DEFAULTS, Limits, PoolPolicy
from trainmaster.core.rules.violation import ViolationRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCondition:
    """What must still hold in the pool at the instant of the write."""

    policy_version: int
    most_used: Vector | None = None
    """Most that may be in use before the claim, by capacity."""
    used: Vector | None = None
    """Exactly what must be in use (a preemption decided on other numbers is void)."""
    places_hold: PreemptionReservation | None = None
    replaces_hold: PreemptionReservation | None = None
    """What is stored where ``places_hold`` goes, as it was seen; None: the preemptor has none yet."""
    ends_hold_of: str | None = None
    drops_hold: PreemptionReservation | None = None
    """What is stored is to go, and must be as it was seen."""
    still_waiting: WaitingJob | None = None
    """The preemptor, which must be unchanged."""
    warm: Vector | None = None
    """Exactly what must be warm."""
    reuses: WarmPool | None = None
    """The warm pool that the claim turns into use; it must still be there."""
    most_committed: int | None = None
    """Most cents that may be committed in the month of the claimed attempt, before it."""
    probes: RoleChange | None = None
    """The claim takes the one try that a pause of starts with its role allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What must still hold for a new job's team in its pool at the instant of the write."""

    policy_version: int
    """The one that the submission was judged by."""
    limits: Limits
    marks_team: bool = False
    """Nobody has noted yet that the pool counts the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFreeze:
    """While a policy that takes something away is put in force, nobody may be let in by the old one.

    Submissions that were judged by the old policy are refused, those judged by the new one are not.
    """

    pools: tuple[str, ...]
    teams: tuple[str, ...]
    """All who could submit by the old policy."""
    version: int
    """Of the old policy."""
    at: datetime
    until: datetime
    """It ends by itself, should whoever closed the pools die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Which job and attempt a training-job name stands for."""

    job: str
    entry_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    at: datetime
    attempt: int
    from_state: JobState | None
    to_state: JobState
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A row of the table, or a part of one, that cannot be understood: skipped, reported, left as it is."""

    key: str
    """``partition/sort key``; of a part also its attribute: ``P#main/counters/hold#urgent``."""
    error: str
    pool: str | None = None
    """Whose row it is; None: no pool's, or nobody can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCalls:
    """Calls of the API by one team in one minute."""

    reads: int = 0
    calls: int = 0
    """Reads and changes together."""


class TeamStanding(StrEnum):
    """What a pool knows of a team before a submission."""

    COUNTED = "counted"
    NEW = "new"
    """It has no row, or one that an earlier release made: the next submission marks it as counted."""
    LOST = "lost"
    """Its row is gone or cannot be understood, so its jobs are not all counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """What the table says before a job is submitted."""

    policy_version: int
    """Of the policy in force; 0 before the first."""
    standing: TeamStanding
    predicted: timedelta | None
    """How long the team's next job of this lane is likely to train; None before one has completed."""
    learned: tuple[LearnedRow | None, ...] = ()
    """Of the job's ``Traits.keys``; None: nothing of the kind has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState:
    """What one team uses and how many of its jobs wait in a pool."""

    used: Vector
    waiting: int
    queued: int = 0
    """Of those, how many wait for their turn."""
    past_use: UseSums = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    used: Vector
    teams: Mapping[str, TeamState]
    warm: Vector = field(default_factory=dict)
    warm_pools: tuple[WarmPool, ...] = ()
    account_limits: Mapping[Capacity, AccountLimit] = field(default_factory=dict)
    role_starts: Mapping[str, RoleStarts] = field(default_factory=dict)
    """By ``starts_key``, of roles that AWS refused starts with."""
    last_end: Mapping[Capacity, datetime] = field(default_factory=dict)
    """When instances of the type last came free."""
    order_key: str | None = None
    """``PoolPolicy.order_key`` of the order that its jobs have scores of; None before anybody noted it."""
    recount: Reason | None = None
    """Why nothing starts until its counters are counted again; None: they are understood."""
    running: tuple[RunningJob, ...] = ()

    def shares(self, pool: PoolPolicy, *, now: datetime) -> dict[str, TeamShare]:
        """How the teams with jobs in the pool stand, whatever the weight is."""
        return team_shares(
            pool.order.fair_share,
            {name for name, team in self.teams.items() if team.queued},
            past={name: team.past_use for name, team in self.teams.items()},
            running=self.running,
            now=now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicy:
    """The policy document in force."""

    revision: int
    """Rises with each document; 0 before the first."""
    version: int
    """Rises with each document *and* each pause: what claims are conditional on."""
    paused: bool
    document: Mapping[str, Any]
    text: str | None = None
    """As its author wrote it, comments and all. Revisions alone have it: passes read the current policy."""
    is_readable: bool = True
    """False: what is stored is not even JSON, and ``document`` is empty."""
    seal_key: str = ""
    """Secret of this table, in hex, made with the first write: what paging tokens are sealed with."""
    defaults: int = DEFAULTS
    """Which defaults the revision was written under: what is not in it means what it meant then."""

    def followed_by(self, document: Mapping[str, Any], text: str | None) -> "StoredPolicy":
        """The next revision, written under the defaults of today; its version is the store's to raise."""
        return replace(self, revision=self.revision + 1, document=document, text=text, defaults=DEFAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A job that SageMaker runs already, with all that is to be written together."""

    job: Job
    body: bytes
    """Its request, as far as it is known."""
    note: Reason
    """For the history."""
    record: ViolationRecord
    replaces: ViolationRecord | None = None
    messages: tuple[OutboxMessage, ...] = ()
    """Of ``UNMANAGED``."""
    policy_version: int
    """Of the policy that it was adopted by: the first that a pool without a policy hears of."""
