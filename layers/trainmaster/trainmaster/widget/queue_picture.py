"""Read what the widget shows of the queue, with GetItem and Query and within fixed bounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.fair_share import shifts_of
from trainmaster.core.planning.plan_reasons import ToldReasons
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.records import PoolState

MOST_POOLS = 20
MOST_RUNNING = 20
"""Running jobs of one pool that have a line; the next two bound its waiting and its parked jobs."""
MOST_WAITING = 30
MOST_PARKED = 10
ENOUGH = timedelta(seconds=3)
"""Time the function must have left for one more pool."""


class PictureReader(Protocol):
    def pool_state(self, pool: str) -> PoolState: ...

    def running(self, pool: str) -> tuple[RunningJob, ...]: ...

    def waiting(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int] | None = None,
    ) -> tuple[WaitingJob, ...]: ...

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The reads that the widget may make, and the time it has for them."""

    reader: PictureReader
    told_reasons: Callable[[str], ToldReasons]
    clock: Callable[[], datetime]
    left: Callable[[], timedelta]
    """Returns the time left to this invocation."""
    shows_names: bool
    """Whether jobs and teams are named; if not, their names are not even in the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    position: int | None
    """Place in the pool's order; None if the job holds instances or does not wait for its turn."""
    job: str | None
    team: str | None
    state: JobState
    instances: Vector
    priority: int
    since: datetime
    """Time of the claim; time of submission for a job that waits."""
    why: str
    """Code of the reason why it waits, as the last pass found it; "" where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPicture:
    name: str
    capacity: Vector
    is_known: bool = True
    """False if the pool could not be read; then the following fields say nothing."""
    used: Vector = field(default_factory=dict)
    warm: Vector = field(default_factory=dict)
    nothing_starts: bool = False
    """Whether the pool's counters have to be counted again before a job starts."""
    running: int = 0
    waiting: int = 0
    """All waiting jobs, those included that have no line."""
    lines: tuple[QueueLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePicture:
    at: datetime
    paused: bool
    pools: tuple[PoolPicture, ...]
    left_out: int
    """Number of pools that have no picture here."""


def picture(pools: Sequence[PoolPolicy], *, paused: bool, reads: Reads) -> QueuePicture:
    pictures = tuple(_pictures(pools, reads))
    return QueuePicture(at=reads.clock(), paused=paused, pools=pictures, left_out=len(pools) - len(pictures))


def _pictures(pools: Sequence[PoolPolicy], reads: Reads) -> Iterator[PoolPicture]:
    """Yield one pool, then as many as the time allows; an unreadable pool does not hide the others."""
    for number, pool in enumerate(pools[:MOST_POOLS]):
        if number and reads.left() < ENOUGH:
            return
        try:
            yield _picture(pool, reads)
        except TrainmasterError:
            yield PoolPicture(name=pool.name, capacity=pool_vector(pool), is_known=False)


def _picture(pool: PoolPolicy, reads: Reads) -> PoolPicture:
    state, live = reads.reader.pool_state(pool.name), reads.reader.running(pool.name)
    return PoolPicture(
        name=pool.name,
        capacity=pool_vector(pool),
        used=state.used,
        warm=state.warm,
        nothing_starts=state.recount is not None,
        running=len(live),
        waiting=sum(team.waiting for team in state.teams.values()),
        lines=(*(_live_line(job, reads) for job in islice(live, MOST_RUNNING)), *_queue(pool, state, reads)),
    )


def _queue(pool: PoolPolicy, state: PoolState, reads: Reads) -> Iterator[QueueLine]:
    shifts = shifts_of(state.shares(pool, now=reads.clock()), pool)
    waiting = reads.reader.waiting(pool.name, after=None, limit=MOST_WAITING, shifts=shifts)
    codes = reads.told_reasons(pool.name).codes if waiting else {}
    for number, job in enumerate(waiting, start=1):
        version, code = codes.get(job.name, (0, ""))
        yield _waiting_line(job, reads, position=number, why=code if version == job.ver else "")
    for job in reads.reader.parked(pool.name, after=None, limit=MOST_PARKED):
        why = ReasonCode.HELD if job.state is JobState.HELD else ReasonCode.BACKOFF
        yield _waiting_line(job, reads, position=None, why=why)


def _live_line(job: RunningJob, reads: Reads) -> QueueLine:
    return QueueLine(
        position=None,
        job=job.name if reads.shows_names else None,
        team=job.team if reads.shows_names else None,
        state=job.state,
        instances=job.vector,
        priority=job.priority,
        since=job.claimed_at,
        why="",
    )


def _waiting_line(job: WaitingJob, reads: Reads, *, position: int | None, why: str) -> QueueLine:
    return QueueLine(
        position=position,
        job=job.name if reads.shows_names else None,
        team=job.team if reads.shows_names else None,
        state=job.state,
        instances=job.vector,
        priority=job.priority,
        since=job.submitted_at,
        why=why,
    )
