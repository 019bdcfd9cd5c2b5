"""Records that are written and read: changes of jobs with their conditions, and what the table holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.fair_share import TeamShare, team_shares
from trainmaster.core.planning.past_use import UseSums
from trainmaster.core.planning.refusal_records import AccountLimit, RoleChange, RoleStarts
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob, WarmPool
from trainmaster.core.planning.throttles import Throttle
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.policy import DEFAULTS, Limits, PoolPolicy
from trainmaster.core.rules.violation import ViolationRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCondition:
    """Conditions that must still hold in the pool at the instant of the write."""

    policy_version: int
    most_used: Vector | None = None
    """Most instances that may be in use before the claim, by capacity."""
    used: Vector | None = None
    """Exact instances that must be in use: a preemption decided on other numbers is void."""
    places_hold: PreemptionReservation | None = None
    replaces_hold: PreemptionReservation | None = None
    """The reservation stored where ``places_hold`` goes, as it was seen; None: the preemptor has none yet."""
    keeps: tuple[PreemptionReservation, ...] = ()
    """Reservations for jobs that are stopped to come back at another width; none of them has one yet."""
    ends_hold_of: str | None = None
    drops_hold: PreemptionReservation | None = None
    """The stored reservation that is deleted, which must be as it was seen."""
    still_waiting: WaitingJob | None = None
    """The preemptor, which must be unchanged."""
    warm: Vector | None = None
    """Exact instances that must be warm."""
    reuses: WarmPool | None = None
    """The warm pool that the claim turns into use; it must still be there."""
    most_committed: int | None = None
    """Most cents that may be committed in the month of the claimed attempt, before it."""
    throttles: tuple[Throttle, ...] = ()
    """Arrays whose tasks are claimed."""
    probes: RoleChange | None = None
    """Set if the claim takes the one try that a pause of starts with its role allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Conditions that must still hold for a new job's team in its pool at the instant of the write."""

    policy_version: int
    """Version of the policy that the submission was checked against."""
    limits: Limits
    marks_team: bool = False
    """Whether it is not yet recorded that the pool counts the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFreeze:
    """A freeze of submissions while a policy that takes something away is put in force.

    Those that were checked against the old policy are refused, those checked against the new one are not.
    """

    pools: tuple[str, ...]
    teams: tuple[str, ...]
    """All teams that could submit by the old policy."""
    version: int
    """Version of the old policy."""
    at: datetime
    until: datetime
    """End of the freeze, should the process that closed the pools die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """The job and attempt that a training-job name belongs to."""

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
    """Pool whose row it is; None: it belongs to none, or that is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCalls:
    """Calls of the API by one team in one minute."""

    reads: int = 0
    calls: int = 0
    """Number of reads and changes together."""


class TeamStanding(StrEnum):
    """Standing of a team in a pool before a submission."""

    COUNTED = "counted"
    NEW = "new"
    """It has no row, or one that an earlier release made: the next submission marks it as counted."""
    LOST = "lost"
    """Its row is gone or cannot be understood, so its jobs are not all counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """Facts that the table holds before a job is submitted."""

    policy_version: int
    """Version of the policy in force; 0 before the first."""
    standing: TeamStanding
    predicted: timedelta | None
    """Likely training time of the team's next job of this lane; None before one has completed."""
    learned: tuple[LearnedRow | None, ...] = ()
    """Run times by the job's ``Traits.keys``, in their order; None: no such job has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState:
    """Instances that one team uses and its waiting jobs in a pool."""

    used: Vector
    waiting: int
    queued: int = 0
    """Number of them that wait for their turn."""
    past_use: UseSums = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    used: Vector
    teams: Mapping[str, TeamState]
    warm: Vector = field(default_factory=dict)
    warm_pools: tuple[WarmPool, ...] = ()
    warm_histories: Mapping[str, WarmHistory] = field(default_factory=dict)
    """Records of the warm pools' keys, as far as there are any."""
    account_limits: Mapping[Capacity, AccountLimit] = field(default_factory=dict)
    role_starts: Mapping[str, RoleStarts] = field(default_factory=dict)
    """Starts by ``starts_key``, only of roles that AWS refused starts with."""
    last_end: Mapping[Capacity, datetime] = field(default_factory=dict)
    """When instances of the type last came free."""
    order_key: str | None = None
    """``PoolPolicy.order_key`` of the order that its jobs have scores of; None before it was recorded."""
    recount: Reason | None = None
    """Reason why nothing starts until its counters are counted again; None: they are understood."""
    running: tuple[RunningJob, ...] = ()

    def shares(self, pool: PoolPolicy, *, now: datetime) -> dict[str, TeamShare]:
        """Return the standing of each team with queued jobs, whatever the weight of fair share is."""
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
    """Version that rises with each document *and* each pause; claims are conditional on it."""
    paused: bool
    document: Mapping[str, Any]
    text: str | None = None
    """Text as its author wrote it, with comments. Only revisions have it: passes read the current policy."""
    is_readable: bool = True
    """False if the stored text is not even JSON; ``document`` is empty then."""
    seal_key: str = ""
    """Secret of this table, in hex, made with the first write; paging tokens are sealed with it."""
    defaults: int = DEFAULTS
    """Number of the defaults that the revision was written under: a key that it lacks means what it meant
    then."""
    put_at: datetime | None = None
    """Instant at which the revision came into force; None of those that earlier releases wrote."""
    put_by: str = ""
    """Principal who put it in force; empty if unknown."""

    def followed_by(
        self,
        document: Mapping[str, Any],
        text: str | None,
        *,
        at: datetime | None = None,
        by: str = "",
    ) -> "StoredPolicy":
        """Return the next revision, written under the defaults of today; the store raises its version."""
        next_one = replace(self, revision=self.revision + 1, document=document, text=text)
        return replace(next_one, defaults=DEFAULTS, put_at=at, put_by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A job that SageMaker runs already, with all rows that are written together."""

    job: Job
    body: bytes
    """Its request, as far as it is known."""
    note: Reason
    """Reason for the history."""
    record: ViolationRecord
    replaces: ViolationRecord | None = None
    messages: tuple[OutboxMessage, ...] = ()
    """Messages of pool ``UNMANAGED``."""
    policy_version: int
    """Version of the policy that it was adopted by; a pool that has seen none so far takes it over."""
