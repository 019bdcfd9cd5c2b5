"""The table, as small protocols: one for each kind of reader and writer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.core.costs.ledger import MonthAccount, PreemptionEntry, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.first_look import Front, Look, Unseen
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.pace import Pace
from trainmaster.core.planning.refusal_records import AccountLimit, RoleChange, RoleStarts
from trainmaster.core.planning.snapshot import (
    LaneRow,
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.records import (
    Admission,
    Adoption,
    Alias,
    Entrance,
    HistoryLine,
    PoolState,
    TeamCalls,
    WriteCondition,
)
from trainmaster.core.rules.violation import ViolationRecord
from trainmaster.ports.dependencies import DependencyReader, DependencyStore
from trainmaster.ports.reasons import PoolMarkStore, ReasonStore


class JobStore(ReasonStore, PoolMarkStore, DependencyStore, Protocol):
    """Writes of jobs; each call is one transaction."""

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        """Store a new job with its request.

        Raises:
            LostRaceError: The name is in use, or the policy is being changed under the pool's feet.
            TeamLimitError: The team has reached one of its limits in the pool.
        """

    def count_change(self, pool: str, team: str, *, most: int, at: datetime) -> bool:
        """Count a change of a job with the team's submissions; False, and uncounted, where there are most."""

    def adopt(self, adoption: Adoption, *, at: datetime) -> None:
        """Store a job that SageMaker runs already: running, counted, whatever the pool has room for.

        Raises LostRaceError when the name is in use or the record is not the one that was seen.
        """

    def record_violation(
        self,
        record: ViolationRecord,
        *,
        replaces: ViolationRecord | None = None,
        messages: Sequence[OutboxMessage] = (),
    ) -> bool:
        """Keep what was found about a training job, and leave messages to ``UNMANAGED`` with it.

        False: another one than ``replaces`` is kept (None: any is), and nothing was written.
        """

    def leave(self, pool: str, messages: Sequence[OutboxMessage]) -> None:
        """Leave messages to ``schedule`` beside those that ``commit`` leaves; one that is there stays."""

    def count_missed_warm_pool(self, pool: str, *, missed: bool) -> int:
        """Of a start that counted on one; how many in a row have missed theirs."""

    def leave_once(self, pool: str, message: OutboxMessage, *, subject: str) -> bool:
        """Leave a message of a pool; False, and nothing left, where one of this subject ever was."""

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        """Write all changes or none; the jobs with their new versions. Raises LostRaceError."""

    def remove_entry(self, pool: str, entry: WaitingJob, job: Job | None) -> None:
        """Drop the queue or parking entry of a job that is gone (None), or stands elsewhere by now.

        Raises LostRaceError when the entry or the job is not as it was seen.
        """

    def drop_lanes(self, pool: str, lanes: Iterable[LaneRow]) -> None:
        """Of empty lanes; a row stays where somebody was put into the lane since it was read."""

    def take_over(self, pool: str, lanes: Sequence[LaneRow], *, in_time: Callable[[], bool]) -> None:
        """Put the entries of earlier lanes into the pool's order, as far as time allows.

        May be done again and by two at once; who leaves the lane meanwhile is not put back.
        """

    def limit_hold(self, pool: str, hold: PreemptionReservation, until: datetime) -> None: ...

    def drop_hold(self, pool: str, hold: PreemptionReservation) -> None: ...

    def change_warm(
        self,
        pool: str,
        before: WarmPool | None,
        after: WarmPool | None,
        *,
        at: datetime,
        retained: timedelta | None = None,
    ) -> None:
        """Write, replace or drop a warm pool, count it, and bill one that is dropped.

        It is billed for ``retained``, the time that SageMaker says; where it says none until ``at``.
        Raises LostRaceError unless it is ``before``.
        """

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """Remember what the account refused; None: it refuses no more."""

    def note_role(self, pool: str, change: RoleChange) -> bool:
        """Keep how AWS answers starts with a role; False, and nothing written, where it has changed."""

    def ranked(self, pool: str, order_key: str) -> None:
        """Every job of the pool has a score of this order."""

    def warned(self, team: str, month: str) -> None:
        """The team was notified that most of its month's budget is spent."""


class OutboxStore(Protocol):
    """Messages of a pool, or of ``UNMANAGED``."""

    def messages(self, pool: str, *, limit: int) -> tuple[OutboxMessage, ...]:
        """By their ids."""

    def take(self, pool: str, message: OutboxMessage, *, until: datetime, now: datetime) -> bool:
        """True: it is ours until then. False: it is done, or another pass is at it."""

    def done(self, pool: str, message: OutboxMessage) -> None: ...


class ViolationReader(Protocol):
    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        """What is kept of a training job of this name and instant."""

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        """Of jobs of one month (``YYYY-MM``, UTC), by instant and name, from behind ``after``."""


class JobReader(DependencyReader, Protocol):
    """Strongly consistent reads of single jobs."""

    def job(self, name: str) -> Job | None:
        """Raises RowSetAsideError when its row cannot be understood."""

    def alias(self, training_job_name: str) -> Alias | None:
        """Raises RowSetAsideError when its row cannot be understood."""

    def request(self, name: str) -> dict[str, Any]:
        """The CreateTrainingJob body as submitted. Raises RowSetAsideError when it is gone or broken."""

    def to_start(self, names: Iterable[str]) -> dict[str, tuple[Job, dict[str, Any]]]:
        """Jobs and their requests in as few calls as it takes, but for those that are gone or broken."""

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        """Attempts, oldest first, and the last 200 transitions, oldest first."""


class SnapshotReader(Protocol):
    def snapshot(
        self,
        pool: PoolPolicy,
        *,
        policy: Policy,
        paused: bool,
        now: datetime,
        skip: frozenset[str] = frozenset(),
    ) -> Snapshot:
        """``skip``: jobs that wait and whose rows turned out to be out of reach; those behind them come."""

    def overview(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot:
        """For people: as a pass reads it, of those that wait the first of the pool and of each team alone.

        What it costs is the same for any number of lanes.
        """


class QueueReader(Protocol):
    """Reads for people: lists in their order, counts; not on the decision path."""

    def queue_length(self, pool: str) -> int:
        """How many wait their turn; costs the same however many do."""

    def run_times(self, pool: str, lanes: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], RunTimes]:
        """How long jobs of the pool trained, by (team, lane): of the first 250, and of these ``lanes``."""

    def waiting(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int] | None = None,
    ) -> tuple[WaitingJob, ...]:
        """In their turn, from behind rank ``after``.

        Args:
            pool: Its name.
            after: None: from the first on.
            limit: The most entries.
            shifts: Milliseconds to add to the scores of each team's jobs; the entries come with them, and
                ``after`` is a rank with them, too.
        """

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        """Backing off and held, by (until in ms, name)."""

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        """Priority descending, then start."""

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        """(ended_at, name) of final jobs, newest first, from behind ``after``; from the index."""


class ReadCountStore(Protocol):
    def add_calls(self, team: str, counted: TeamCalls, *, at: datetime) -> Mapping[str, TeamCalls]:
        """Add to a team's minute; return the minute of every team. Raises UnavailableError."""


class PaceStore(Protocol):
    """What is known of the account's rates; both may raise UnavailableError."""

    def pace(self, operation: str) -> Pace: ...

    def change_pace(self, operation: str, before: Pace, after: Pace) -> bool:
        """False: it is not ``before`` any more."""


class Rotation(Protocol):
    """Where looks at all live jobs go on that one run had no time for."""

    def looked_upto(self) -> str | None:
        """Name of the last job up to which the last run looked at everybody; None: there was none."""

    def note_looked(self, name: str) -> None: ...


class FrontRegister(Protocol):
    """What passes look at of each pool's order; each call may raise UnavailableError."""

    def front(self, pool: str) -> Front: ...

    def note_look(self, pool: str, look: Look) -> None: ...

    def note_unseen(self, pool: str, unseen: Unseen | None) -> None: ...


class SpotReader(Protocol):
    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        """What spot attempts that ended recently say about a type, the oldest day first."""


class LedgerReader(Protocol):
    def month(self, team: str, month: str) -> MonthAccount: ...

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]: ...


class PoolReader(Protocol):
    def jobs(self, names: Iterable[str]) -> dict[str, Job]: ...

    def changed_since(self, names: Iterable[str], since: datetime) -> dict[str, Job]:
        """Those that were written then or later, but for their reason to wait; and where nobody knows."""

    def pool_state(self, pool: str) -> PoolState: ...

    def role_starts(self, pool: str) -> Mapping[str, RoleStarts]:
        """Read how AWS answers starts with the roles of which it refused some, by ``starts_key``."""

    def entrance(self, pool: str, team: str, lane: str, *, learned: Sequence[str], now: datetime) -> Entrance:
        """All that a submission of the team asks before it is written, in one call where nothing is amiss.

        Args:
            pool: Where it would wait.
            team: Whose it is.
            lane: What it asks for.
            learned: ``Traits.keys``.
            now: Of the submission.
        """

    def entries_before(self, pool: str, rank: tuple[int, str], *, most: int) -> int:
        """In one call: of the pool's order alone, where entries of the release before are not yet."""
