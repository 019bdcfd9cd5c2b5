"""What the widget knows of the queue: read with GetItem and Query, and bounded whatever there is."""

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
"""Of one pool, and so on."""
MOST_WAITING = 30
MOST_PARKED = 10
ENOUGH = timedelta(seconds=3)
"""Of the function's time, for one more pool."""


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
    """All that the widget may ask the table."""

    reader: PictureReader
    told_reasons: Callable[[str], ToldReasons]
    clock: Callable[[], datetime]
    left: Callable[[], timedelta]
    """Time of this invocation."""
    shows_names: bool
    """Of jobs and teams; without, they are not even in the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    position: int | None
    """In the pool's order; None: it holds its instances, or waits for something else than its turn."""
    job: str | None
    team: str | None
    state: JobState
    instances: Vector
    priority: int
    since: datetime
    """Of the claim; of a job that waits, of its submission."""
    why: str
    """Code of the reason why it waits, as the last pass found it; "" where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPicture:
    name: str
    capacity: Vector
    is_known: bool = True
    """False: it could not be read, and nothing of the following is known."""
    used: Vector = field(default_factory=dict)
    warm: Vector = field(default_factory=dict)
    nothing_starts: bool = False
    """Its counters have to be counted again."""
    running: int = 0
    waiting: int = 0
    """All of them, those included that have no line."""
    lines: tuple[QueueLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePicture:
    at: datetime
    paused: bool
    pools: tuple[PoolPicture, ...]
    left_out: int
    """Pools that have no picture here."""


def picture(pools: Sequence[PoolPolicy], *, paused: bool, reads: Reads) -> QueuePicture:
    pictures = tuple(_pictures(pools, reads))
    return QueuePicture(at=reads.clock(), paused=paused, pools=pictures, left_out=len(pools) - len(pictures))


def _pictures(pools: Sequence[PoolPolicy], reads: Reads) -> Iterator[PoolPicture]:
    """One at least, then as many as the time allows; one that cannot be read keeps no other from view."""
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
        lines=(*(_held_by(job, reads) for job in islice(live, MOST_RUNNING)), *_queue(pool, state, reads)),
    )


def _queue(pool: PoolPolicy, state: PoolState, reads: Reads) -> Iterator[QueueLine]:
    shifts = shifts_of(state.shares(pool, now=reads.clock()), pool)
    waiting = reads.reader.waiting(pool.name, after=None, limit=MOST_WAITING, shifts=shifts)
    codes = reads.told_reasons(pool.name).codes if waiting else {}
    for number, job in enumerate(waiting, start=1):
        version, code = codes.get(job.name, (0, ""))
        yield _asked_by(job, reads, position=number, why=code if version == job.ver else "")
    for job in reads.reader.parked(pool.name, after=None, limit=MOST_PARKED):
        why = ReasonCode.HELD if job.state is JobState.HELD else ReasonCode.BACKOFF
        yield _asked_by(job, reads, position=None, why=why)


def _held_by(job: RunningJob, reads: Reads) -> QueueLine:
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


def _asked_by(job: WaitingJob, reads: Reads, *, position: int | None, why: str) -> QueueLine:
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
