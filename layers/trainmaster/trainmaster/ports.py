"""What the plane needs of the outside, as small protocols; adapters and the tests' fakes implement them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from trainmaster.jobs import Attempt, Job, JobState, Observation, Reason, Vector
from trainmaster.scheduling.snapshot import Hold, RunningJob, Snapshot, WaitingJob

Clock = Callable[[], datetime]
"""Now, aware, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One job from one version to the next; the store derives every row that follows from it."""

    before: Job
    after: Job
    ended: Attempt | None = None
    """The attempt that is over, as it is to be remembered."""


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


class JobStore(Protocol):
    """Writes of jobs; each call is one transaction."""

    def submit(self, job: Job, body: bytes) -> None:
        """Store a new job with its request. Raises LostRaceError when the name is in use."""

    def commit(
        self, changes: Sequence[Change], *, at: datetime, guard: Guard | None = None
    ) -> tuple[Job, ...]:
        """Write all changes or none; the jobs with their new versions. Raises LostRaceError."""

    def limit_hold(self, pool: str, hold: Hold, until: datetime) -> None: ...

    def drop_hold(self, pool: str, hold: Hold) -> None: ...


class JobReader(Protocol):
    """Strongly consistent reads of single jobs."""

    def job(self, name: str) -> Job | None: ...

    def alias(self, training_job_name: str) -> Alias | None: ...

    def request(self, name: str) -> dict[str, Any]:
        """The CreateTrainingJob body as submitted."""

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        """Attempts, oldest first, and the last 200 transitions, oldest first."""


class SnapshotReader(Protocol):
    def snapshot(self, pool: str, *, policy: StoredPolicy, now: datetime) -> Snapshot: ...


class QueueReader(Protocol):
    """Reads for people: lists in their order, counts; not on the decision path."""

    def queue_length(self, pool: str) -> int:
        """How many wait their turn; costs the same however many do."""

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


class PoolReader(Protocol):
    def jobs(self, names: Iterable[str]) -> dict[str, Job]: ...

    def pool_state(self, pool: str) -> PoolState: ...


class PolicyStore(Protocol):
    def current(self) -> StoredPolicy: ...

    def put(
        self, document: Mapping[str, Any], *, pools: Sequence[str], replaces: StoredPolicy
    ) -> StoredPolicy:
        """Store a new revision and tell each pool's counters. Raises LostRaceError."""

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


class AlarmReader(Protocol):
    def in_alarm_since(self, alarm_name: str) -> datetime | None:
        """When it went to ALARM; None in any other state and when there is no such alarm."""


class Doorbell(Protocol):
    def ring(self, pools: Iterable[str]) -> None:
        """Wake the scheduler for these pools."""
