"""Estimate when each waiting job starts: every future is rolled forward once for the whole queue."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import mean

from trainmaster.core.forecast.arrivals import Arrivals
from trainmaster.core.forecast.durations import Durations, LaneKey, lane_of
from trainmaster.core.forecast.forecast import HORIZON, PATIENCE, Future, Outlook
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.forecast.sampling import Chance
from trainmaster.core.forecast.start_estimate import (
    MOST_DRAWS,
    MOST_LOOKS,
    MOST_RUNNING,
    MOST_SHAPES,
    StartEstimate,
    band,
)
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeQueue:
    """The jobs that wait for their turn in one pool, in that order."""

    snapshot: Snapshot
    waiting: tuple[WaitingJob, ...]
    """Jobs in the order of their turns; at least one."""
    pool: PoolPolicy
    run_times: Mapping[LaneKey, RunTimes] = field(default_factory=dict)
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEstimate:
    by_job: Mapping[str, StartEstimate]
    """Estimate of each job that starts in a drawn future, by job name."""
    is_cut: bool = False
    """Whether there was no time for one whole future, so that jobs towards the end have no estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """The result of one drawn future."""

    starts: Mapping[str, datetime]
    """First start by job name."""
    share: float
    """Share of the drawn arrivals that came in it."""
    is_whole: bool
    """Whether it was seen to its end: a job without a start in it never starts there."""
    is_cut: bool
    """Whether time was up, or too many jobs were looked at."""


_NOBODY = ""
"""A name that no job has: waiting for it rolls a future to its end."""


class WholeFuture(Future):
    """One future drawn for all jobs, with the first start of each."""

    def __init__(self, outlook: Outlook, arrivals: Iterator[WaitingJob], chance: Chance) -> None:
        super().__init__(outlook, arrivals, chance)
        self.starts: dict[str, datetime] = {}

    def let_all_start(self, *, in_time: Callable[[], bool]) -> bool:
        """Roll forward until all have started; False if time or looks did not suffice.

        True also if the rest never starts, or the future ``grows``.
        """
        self._in_time = in_time
        self._decide(_NOBODY)
        while not self.grows and (places := self._places_left()):
            if self.looks >= MOST_LOOKS or not in_time():
                return False
            interval_end = self._next_interval()
            if interval_end is None or self._now - self._outlook.now > HORIZON:
                return True
            self._let_pass(interval_end, _NOBODY)
            if self._now - self._outlook.now > PATIENCE:
                self.grows = self._falls_behind(places[0])
        return True

    def _places_left(self) -> list[int]:
        """Return the places, from 0, of the jobs that have not started."""
        in_turn = enumerate(self._outlook.waiting)
        return [place for place, job in in_turn if job.name not in self.starts]

    def _falls_behind(self, place: int) -> bool:
        """Tell whether no fewer jobs are ahead than at first; they are ahead of the jobs behind it too."""
        name = self._outlook.waiting[place].name
        return name not in self.starts and self._ahead(name) >= max(place, 1)

    def _start(self, action: Start) -> datetime:
        at = super()._start(action)
        self.starts.setdefault(action.job.name, at)
        return at


def is_too_much(queue: WholeQueue) -> bool:
    lanes = {lane_of(job) for job in queue.waiting}
    return len(lanes) > MOST_SHAPES or len(queue.snapshot.running) > MOST_RUNNING


def lanes_of_queue(queue: WholeQueue) -> tuple[LaneKey, ...]:
    """Return the lanes whose run times the estimate needs."""
    running = Counter(lane_of(job) for job in queue.snapshot.running)
    most_of_them = (lane for lane, _ in running.most_common(MOST_SHAPES))
    return tuple(dict.fromkeys((*(lane_of(job) for job in queue.waiting), *most_of_them)))


def estimate_queue(queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]) -> QueueEstimate:
    """Estimate all starts; equal seeds and questions give equal answers if there is time for all futures.

    Args:
        queue: The pool and its queue as they are.
        seed: Seed of all draws.
        in_time: Returns False once no more time is to be spent; the futures drawn by then are the answer.
    """
    if queue.snapshot.blocked:
        return QueueEstimate(by_job={})
    waits = {job.name: dict[float, list[timedelta]]() for job in queue.waiting}
    is_cut = True
    for drawn in _futures(queue, seed=seed, in_time=in_time):
        if drawn.is_cut and not is_cut:
            break  # what it knows of the first jobs alone would make those behind look early
        is_cut = is_cut and not drawn.is_whole
        for name in waits.keys() & drawn.starts.keys():
            waits[name].setdefault(drawn.share, []).append(drawn.starts[name] - queue.now)
    bands = {name: band(_likeliest(waits_by_share), now=queue.now) for name, waits_by_share in waits.items()}
    return QueueEstimate(
        by_job={name: estimate for name, estimate in bands.items() if estimate}, is_cut=is_cut
    )


def _likeliest(waits: Mapping[float, Sequence[timedelta]]) -> Sequence[timedelta]:
    """Return the waits of the futures with the largest share of arrivals."""
    return waits[max(waits)] if waits else ()


def _futures(queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]) -> Iterator[_Drawn]:
    """Yield drawn futures until there are enough; the last one may be cut.

    If more jobs come ahead than can start, that cannot last: then half of them come, or half of those, until
    all jobs have started in some future. From then on they all come in every other one, for the sake of the
    jobs that start in spite of them.
    """
    if not in_time():
        return
    outlook, arrivals = _outlook(queue), _arrivals(queue)
    left, looks = {job.name for job in queue.waiting}, 0
    share = least = 1.0
    for number in range(MOST_DRAWS):
        coming = arrivals.drawn(f"{seed}/{number}", share=share)
        future = WholeFuture(outlook, coming, Chance(f"{seed}/{number}"))
        is_seen = future.let_all_start(in_time=in_time)
        is_whole = is_seen and not future.grows
        yield _Drawn(starts=future.starts, share=share, is_whole=is_whole, is_cut=not is_seen)
        left -= future.starts.keys()
        if future.grows and left:
            least = min(least, share / 2)
        share = least if share > least else 1.0
        # The next future most likely costs as much as this one did: it is not begun if that would be too
        # much.
        looks += future.looks
        if not is_seen or looks + future.looks > MOST_LOOKS or not in_time():
            return


def _outlook(queue: WholeQueue) -> Outlook:
    durations = Durations.of(queue.run_times, queue.snapshot.running, queue.waiting, now=queue.now)
    return Outlook(
        snapshot=queue.snapshot,
        waiting=queue.waiting,
        pool=queue.pool,
        durations=durations,
        now=queue.now,
    )


def _arrivals(queue: WholeQueue) -> Arrivals:
    """Return the arrivals that go before the last job; the planner decides which others they go behind."""
    saves = [job.has_checkpoint for job in queue.waiting]
    return Arrivals(
        pool=queue.pool,
        run_times=queue.run_times,
        saving=mean([*saves, *(job.has_checkpoint for job in queue.snapshot.running)]),
        asking=max(queue.waiting, key=lambda job: job.rank),
        now=queue.now,
    )
