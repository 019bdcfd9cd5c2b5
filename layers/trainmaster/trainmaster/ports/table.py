"""Protocols for the table, one for each kind of reader and writer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.core.call_rate import CallRate
from trainmaster.core.costs.ledger import MonthAccount, PreemptionEntry, UsageLine
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.durations.work_speeds import MeasuredRun
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.queue_front_looks import Front, Look, Unseen
from trainmaster.core.outbox.messages import OutboxMessage
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
from trainmaster.ports.array_tables import ArrayReader, ArrayStore, DependencyReader, DependencyStore
from trainmaster.ports.reasons import PoolMarkStore, ReasonStore


class JobStore(ReasonStore, PoolMarkStore, DependencyStore, ArrayStore, Protocol):
    """Writes jobs; each call is one transaction."""

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        """Store a new job with its request.

        Raises:
            LostRaceError: The name is in use, or the policy is being changed at this moment.
            TeamLimitError: The team has reached one of its limits in the pool.
        """

    def count_change(self, pool: str, team: str, *, most: int, at: datetime) -> bool:
        """Count a change with the team's submissions; False, and not counted, if there are ``most``."""

    def adopt(self, adoption: Adoption, *, at: datetime) -> None:
        """Store a job that SageMaker runs already, running and counted, even beyond the pool's capacity.

        Raises LostRaceError if the name is in use or the record is not as it was read.
        """

    def record_violation(
        self,
        record: ViolationRecord,
        *,
        replaces: ViolationRecord | None = None,
        messages: Sequence[OutboxMessage] = (),
    ) -> bool:
        """Store what was found about a training job, and leave messages to ``UNMANAGED`` with it.

        Returns False and writes nothing if the stored record is not ``replaces`` (None: if there is any).
        """

    def leave(self, pool: str, messages: Sequence[OutboxMessage]) -> None:
        """Leave messages to ``schedule`` beside those of ``commit``; a message that exists stays as it is."""

    def count_missed_warm_pool(self, pool: str, *, missed: bool) -> int:
        """Count a start that expected a warm pool; return how many in a row have missed theirs."""

    def leave_once(self, pool: str, message: OutboxMessage, *, subject: str) -> bool:
        """Leave a message of a pool; False, and nothing left, if there ever was one of this subject."""

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        """Write all changes or none; return the jobs with their new versions. Raises LostRaceError."""

    def remove_entry(self, pool: str, entry: WaitingJob, job: Job | None) -> None:
        """Drop the entry of a job that is gone (None) or elsewhere; LostRaceError if it is not as read."""

    def drop_lanes(self, pool: str, lanes: Iterable[LaneRow]) -> None:
        """Drop the rows of empty lanes; a row stays if a job entered the lane since it was read."""

    def take_over(self, pool: str, lanes: Sequence[LaneRow], *, in_time: Callable[[], bool]) -> None:
        """Put the entries of earlier lanes into the pool's order, as far as time allows.

        The call may be repeated and run concurrently; a job that leaves its lane meanwhile is not put back.
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

        It is billed for ``retained``, the time that SageMaker reports; without that until ``at``.
        Raises LostRaceError unless the stored one is ``before``.
        """

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        """Remember what the account refused; None if it does not refuse it any more."""

    def note_role(self, pool: str, change: RoleChange) -> bool:
        """Store how AWS answers starts with a role; False, and nothing written, if the record has changed."""

    def ranked(self, pool: str, order_key: str) -> None:
        """Note that every job of the pool has a score of this order."""

    def warned(self, team: str, month: str) -> None:
        """Note that the team was warned that most of its month's budget is spent."""


class OutboxStore(Protocol):
    """Reads and settles messages of a pool, or of ``UNMANAGED``."""

    def messages(self, pool: str, *, limit: int) -> tuple[OutboxMessage, ...]:
        """List messages in order of their ids."""

    def take(self, pool: str, message: OutboxMessage, *, until: datetime, now: datetime) -> bool:
        """Lease the message to the caller until then; False if it is done, or another pass works on it."""

    def done(self, pool: str, message: OutboxMessage) -> None: ...


class ViolationReader(Protocol):
    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        """Return the record of a training job of this name and time of creation; None if there is none."""

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        """List records of one month (``YYYY-MM``, UTC) by instant and name, from behind ``after``."""


class JobReader(DependencyReader, ArrayReader, Protocol):
    """Reads single jobs, strongly consistent."""

    def job(self, name: str) -> Job | None:
        """Read a job; None if there is none. Raises RowSetAsideError if its row cannot be read."""

    def alias(self, training_job_name: str) -> Alias | None:
        """Read an alias; None if there is none. Raises RowSetAsideError if its row cannot be read."""

    def request(self, name: str) -> dict[str, Any]:
        """Return the CreateTrainingJob body as submitted. Raises RowSetAsideError if it is gone or broken."""

    def to_start(self, names: Iterable[str]) -> dict[str, tuple[Job, dict[str, Any]]]:
        """Read jobs and their requests in as few calls as possible; gone and broken ones are omitted."""

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        """Return the attempts, and the last 200 transitions, both with the oldest first."""


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
        """Read a pool for a pass, without the waiting jobs in ``skip``, whose rows were unreadable."""

    def overview(self, pool: PoolPolicy, *, policy: Policy, paused: bool, now: datetime) -> Snapshot:
        """Read a pool for people: of the waiting jobs only the first of the pool and of each team.

        The cost is the same for any number of lanes.
        """


class QueueReader(Protocol):
    """Reads lists in order, and counts, for people; no decision rests on them."""

    def queue_length(self, pool: str) -> int:
        """Count the jobs that wait for their turn; the cost does not depend on their number."""

    def run_times(self, pool: str, lanes: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], RunTimes]:
        """Read how long jobs trained, by (team, lane): the first 250 of the pool, and these ``lanes``."""

    def waiting(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int] | None = None,
    ) -> tuple[WaitingJob, ...]:
        """List waiting jobs in their order, from behind rank ``after``.

        Args:
            pool: Its name.
            after: None: from the first on.
            limit: The most entries.
            shifts: Milliseconds to add to the scores of each team's jobs; the entries come with them, and
                ``after`` is a rank with them, too.
        """

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        """List jobs that back off or are held, by (until in ms, name)."""

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        """List running jobs, by descending priority, then start."""

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        """List (ended_at, name) of final jobs, newest first, from behind ``after``; read from the index."""


class ReadCountStore(Protocol):
    def add_calls(self, team: str, counted: TeamCalls, *, at: datetime) -> Mapping[str, TeamCalls]:
        """Add to a team's calls of this minute; return the minute of every team. Raises UnavailableError."""


class PaceStore(Protocol):
    """Keeps the account's rates; both methods may raise UnavailableError."""

    def pace(self, operation: str) -> CallRate: ...

    def change_pace(self, operation: str, before: CallRate, after: CallRate) -> bool:
        """Replace the rate; False if it is not ``before`` any more."""


class Rotation(Protocol):
    """Remembers where looks at live jobs continue when one run had no time for all."""

    def looked_upto(self) -> str | None:
        """Return the name of the last job that the last run looked at; None if there was none."""

    def note_looked(self, name: str) -> None: ...


class FrontRegister(Protocol):
    """Keeps what passes consider of each pool's order; each call may raise UnavailableError."""

    def front(self, pool: str) -> Front: ...

    def note_look(self, pool: str, look: Look) -> None: ...

    def note_unseen(self, pool: str, unseen: Unseen | None) -> None: ...


class SpotReader(Protocol):
    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        """Return what recently ended spot attempts show about a type, the oldest day first."""


class LedgerReader(Protocol):
    def month(self, team: str, month: str) -> MonthAccount: ...

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]: ...


class PoolReader(Protocol):
    def jobs(self, names: Iterable[str]) -> dict[str, Job]: ...

    def changed_since(self, names: Iterable[str], since: datetime) -> dict[str, Job]:
        """Return jobs written since, or at an unknown time; a new reason to wait is no such write."""

    def pool_state(self, pool: str) -> PoolState: ...

    def role_starts(self, pool: str) -> Mapping[str, RoleStarts]:
        """Read how AWS answers starts with roles that it refused, by ``starts_key``."""

    def entrance(self, pool: str, team: str, lane: str, *, learned: Sequence[str], now: datetime) -> Entrance:
        """Read all that a team's submission needs before it is written, in one call unless rows are broken.

        ``lane`` is that of the job's shapes, as text, and ``learned`` its ``Traits.keys``.
        """

    def work_speeds(self, pool: str, team: str, work_kind: str) -> tuple[MeasuredRun, ...]:
        """Read the measured runs of a kind of work (``Traits.work_kind``) in all shapes, in one query."""

    def entries_before(self, pool: str, rank: tuple[int, str], *, most: int) -> int:
        """Count entries before a rank in one call, without those of earlier lanes not yet in order."""
