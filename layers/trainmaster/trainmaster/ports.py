"""What the plane needs of the outside, as small protocols; adapters and the tests' fakes implement them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.alarms import Alarm, AlarmReading
from trainmaster.ends import Observation
from trainmaster.errands import Errand
from trainmaster.governance.violations import ViolationRecord
from trainmaster.jobs import (
    Attempt,
    Job,
    JobState,
    Reason,
)
from trainmaster.ledger import MonthAccount, PreemptionEntry, UsageLine
from trainmaster.policy import Limits, Policy, PoolPolicy
from trainmaster.scheduling.run_times import RunTimes
from trainmaster.scheduling.snapshot import AccountLimit, Hold, RunningJob, Snapshot, WaitingJob, WarmPool
from trainmaster.shapes import (
    Capacity,
    Vector,
)
from trainmaster.spot_record import SpotDay

Clock = Callable[[], datetime]
"""Now, aware, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One job from one version to the next; the store derives every row that follows from it."""

    before: Job
    after: Job
    ended: Attempt | None = None
    """The attempt that is over, as it is to be remembered."""
    leaves_warm: WarmPool | None = None
    """What SageMaker kept of it: from now on counted as warm, no longer as used."""
    note: Reason | None = None
    """Who wanted it, for the history; with it there is a line even where the state stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What must still hold in the pool at the instant of the write."""

    policy_version: int
    room: Vector | None = None
    """Most that may be in use before the claim, by capacity."""
    used: Vector | None = None
    """Exactly what must be in use (a preemption decided on other numbers is void)."""
    places_hold: Hold | None = None
    ends_hold_of: str | None = None
    still_waiting: WaitingJob | None = None
    """The preemptor, which must be unchanged."""
    warm: Vector | None = None
    """Exactly what must be warm."""
    reuses: WarmPool | None = None
    """The warm pool that the claim turns into use; it must still be there."""
    committed_room: int | None = None
    """Most cents that may be committed in the month of the claimed attempt, before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What must still hold for a new job's team in its pool at the instant of the write."""

    policy_version: int
    """The one that the submission was judged by."""
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
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
class TeamState:
    """What one team uses and how many of its jobs wait in a pool."""

    used: Vector
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    used: Vector
    teams: Mapping[str, TeamState]
    warm: Vector = field(default_factory=dict)
    warm_pools: tuple[WarmPool, ...] = ()
    account_limits: Mapping[Capacity, AccountLimit] = field(default_factory=dict)
    last_end: Mapping[Capacity, datetime] = field(default_factory=dict)
    """When instances of the type last came free."""
    order_key: str | None = None
    """``PoolPolicy.order_key`` of the order that its jobs have scores of; None before anybody noted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicy:
    """The policy document in force."""

    revision: int
    """Rises with each document; 0 before the first."""
    version: int
    """Rises with each document *and* each pause: what claims are conditional on."""
    paused: bool
    document: Mapping[str, Any]
    seal_key: str = ""
    """Secret of this table, in hex, made with the first write: what paging tokens are sealed with."""


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
    errands: tuple[Errand, ...] = ()
    """Of ``STRAYS``."""
    policy_version: int
    """Of the policy that it was adopted by: the first that a pool without a policy hears of."""


class JobStore(Protocol):
    """Writes of jobs; each call is one transaction."""

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        """Store a new job with its request.

        Raises:
            LostRaceError: The name is in use, or the policy is being changed under the pool's feet.
            TeamLimitError: The team has reached one of its limits in the pool.
        """

    def adopt(self, adoption: Adoption, *, at: datetime) -> None:
        """Store a job that SageMaker runs already: running, counted, whatever the pool has room for.

        Raises LostRaceError when the name is in use or the record is not the one that was seen.
        """

    def record_violation(
        self,
        record: ViolationRecord,
        *,
        replaces: ViolationRecord | None = None,
        errands: Sequence[Errand] = (),
    ) -> bool:
        """Keep what was found about a training job, and leave errands to ``STRAYS`` with it.

        False: another one than ``replaces`` is kept (None: any is), and nothing was written.
        """

    def leave(self, pool: str, errands: Sequence[Errand]) -> None:
        """Leave errands to ``schedule`` beside those that ``commit`` leaves; one that is there stays."""

    def commit(
        self, changes: Sequence[Change], *, at: datetime, guard: Guard | None = None
    ) -> tuple[Job, ...]:
        """Write all changes or none; the jobs with their new versions. Raises LostRaceError."""

    def limit_hold(self, pool: str, hold: Hold, until: datetime) -> None: ...

    def drop_hold(self, pool: str, hold: Hold) -> None: ...

    def change_warm(
        self, pool: str, before: WarmPool | None, after: WarmPool | None, *, at: datetime
    ) -> None:
        """Write, replace or drop a warm pool, count it, and bill one that is dropped.

        Raises LostRaceError unless it is ``before``.
        """

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """Remember what the account refused; None: it refuses no more."""

    def ranked(self, pool: str, order_key: str) -> None:
        """Every job of the pool has a score of this order."""

    def warned(self, team: str, month: str) -> None:
        """The team was told that most of its month's budget is spent."""


class ErrandStore(Protocol):
    """Errands of a pool, or of ``STRAYS``."""

    def errands(self, pool: str, *, limit: int) -> tuple[Errand, ...]:
        """By their ids."""

    def take(self, pool: str, errand: Errand, *, until: datetime, now: datetime) -> bool:
        """True: it is ours until then. False: it is done, or another pass is at it."""

    def done(self, pool: str, errand: Errand) -> None: ...


class ViolationReader(Protocol):
    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        """What is kept of a training job of this name and instant."""

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        """Of jobs of one month (``YYYY-MM``, UTC), by instant and name, from behind ``after``."""


class JobReader(Protocol):
    """Strongly consistent reads of single jobs."""

    def job(self, name: str) -> Job | None: ...

    def alias(self, training_job_name: str) -> Alias | None: ...

    def request(self, name: str) -> dict[str, Any]:
        """The CreateTrainingJob body as submitted."""

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        """Attempts, oldest first, and the last 200 transitions, oldest first."""


class SnapshotReader(Protocol):
    def snapshot(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot: ...


class QueueReader(Protocol):
    """Reads for people: lists in their order, counts; not on the decision path."""

    def queue_length(self, pool: str) -> int:
        """How many wait their turn; costs the same however many do."""

    def run_times(self, pool: str) -> Mapping[tuple[str, str], RunTimes]:
        """How long jobs of the pool trained, by (team, lane)."""

    def predicted(self, pool: str, team: str, lane: str) -> timedelta | None:
        """How long the team's next job of this lane is likely to train; None before one has completed."""

    def waiting(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        """In their turn, from behind rank ``after``."""

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        """Backing off and held, by (until in ms, name)."""

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        """Priority descending, then start."""

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        """(ended_at, name) of final jobs, newest first, from behind ``after``; from the index."""


class SpotReader(Protocol):
    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        """What spot attempts that ended lately say about a type, the oldest day first."""


class LedgerReader(Protocol):
    def month(self, team: str, month: str) -> MonthAccount: ...

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]: ...


class PoolReader(Protocol):
    def jobs(self, names: Iterable[str]) -> dict[str, Job]: ...

    def pool_state(self, pool: str) -> PoolState: ...


class PolicyStore(Protocol):
    def current(self) -> StoredPolicy: ...

    def revision(self, number: int) -> StoredPolicy | None:
        """As it was put in force; None: there was none."""

    def put(
        self, document: Mapping[str, Any], *, pools: Sequence[str], replaces: StoredPolicy
    ) -> StoredPolicy:
        """Store a new revision and tell the counters of each pool and of ``STRAYS``. Raises LostRaceError."""

    def close(self, closing: Closing) -> None:
        """Raises LostRaceError when another change of the policy has closed one of the pools."""

    def reopen(self, closing: Closing) -> None:
        """Take a ``close`` back, where nobody has closed the pool anew."""

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy: ...  # noqa: FBT001


class TrainingApi(Protocol):
    """SageMaker. Every call may raise UnavailableError (for now)."""

    def create(self, request: Mapping[str, Any]) -> str:
        """The ARN.

        Raises:
            NameTakenError: The name exists.
            TrainingRefusedError: Refused for good.
            ServerFaultError: SageMaker failed; it may have created the training job all the same.
            OutcomeUnknownError: No answer came back.
            UnclassifiedTrainingError: None of these.
        """

    def describe(self, training_job_name: str) -> Observation | None: ...

    def tags(self, training_job_arn: str) -> dict[str, str]: ...

    def stop(self, training_job_name: str) -> None:
        """Ask it to stop; one that is over already is fine."""

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        """How long its warm pool is kept from its end on; zero gives it up. False: it has none (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A training job that somebody else started, as far as SageMaker shows it."""

    observation: Observation
    request: Mapping[str, Any]
    """The CreateTrainingJob request that would make it again; without tags."""
    created_at: datetime
    """In whole milliseconds."""
    tuning_job_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a list of training jobs."""

    training_job_name: str
    created_at: datetime


class TrainingJobReader(Protocol):
    """SageMaker, for jobs that are not known to us. Every call may raise UnavailableError."""

    def described(self, training_job_name: str) -> Described | None: ...

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """Training jobs that run, the newest first; of a long list a part."""

    def tags(self, training_job_arn: str) -> dict[str, str]: ...


class LogReader(Protocol):
    def tail(self, training_job_name: str) -> tuple[str, ...]:
        """The last lines its hosts logged, the oldest first; empty where there are none. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest checkpoint somebody found."""

    written_at: datetime | None = None
    """None: none was found."""
    is_certain: bool = True
    """False: not everything could be read, so there may be a newer one."""


class CheckpointReader(Protocol):
    def newest(self, uri: str) -> Newest:
        """Below an S3 URI. Raises UnavailableError."""


class Notifier(Protocol):
    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Send an event to whoever listens; the same one may come twice. Raises UnavailableError."""


class AlarmReader(Protocol):
    """Every call may raise UnavailableError."""

    def reading(self, alarm_name: str) -> AlarmReading | None:
        """None: there is no such alarm."""

    def readings(self, prefix: str) -> Mapping[str, AlarmReading]:
        """Of all alarms whose names begin so, by name."""


class AlarmKeeper(Protocol):
    """Every call may raise UnavailableError."""

    def put(self, alarms: Sequence[Alarm]) -> None:
        """Make each or replace it, in this order. Raises AlarmQuotaError and AlarmRefusedError."""

    def delete(self, names: Sequence[str]) -> None:
        """In this order, a composite before its parts; those that are gone already are fine."""


class Mailer(Protocol):
    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        """To everybody who has subscribed, filtered by the attributes. Raises UnavailableError."""


class Doorbell(Protocol):
    def ring(self, pools: Iterable[str]) -> None:
        """Wake the scheduler for these pools."""
