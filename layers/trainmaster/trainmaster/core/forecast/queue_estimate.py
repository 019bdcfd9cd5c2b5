"""When all the jobs that wait are likely to start: each future is rolled forward once for everybody."""

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
    """One at least."""
    pool: PoolPolicy
    run_times: Mapping[LaneKey, RunTimes] = field(default_factory=dict)
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEstimate:
    by_job: Mapping[str, StartEstimate]
    """Of each that starts in a future that was drawn."""
    is_cut: bool = False
    """There was no time for one whole future: jobs towards the end have no estimate for that reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """What one future says."""

    starts: Mapping[str, datetime]
    """By job."""
    share: float
    """Of the jobs to come that came in it."""
    is_whole: bool
    """Whoever has no start in it never starts there."""
    is_cut: bool
    """Time was up, or too much was looked at."""


_NOBODY = ""
"""The name of no job: whoever waits for it sees a whole future."""


class WholeFuture(Future):
    """One draw for all jobs: when each of them started first."""

    def __init__(self, outlook: Outlook, arrivals: Iterator[WaitingJob], chance: Chance) -> None:
        super().__init__(outlook, arrivals, chance)
        self.starts: dict[str, datetime] = {}

    def let_all_start(self, *, in_time: Callable[[], bool]) -> bool:
        """False: time or looks did not suffice for all of them, or for seeing that they never start.

        True also where it ``grows``.
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
        """Of those that have not started, from 0."""
        in_turn = enumerate(self._outlook.waiting)
        return [place for place, job in in_turn if job.name not in self.starts]

    def _falls_behind(self, place: int) -> bool:
        """No fewer go before the job than at first; nor before those behind it: who passes it passes them."""
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
    """Whose run times it is about."""
    running = Counter(lane_of(job) for job in queue.snapshot.running)
    most_of_them = (lane for lane, _ in running.most_common(MOST_SHAPES))
    return tuple(dict.fromkeys((*(lane_of(job) for job in queue.waiting), *most_of_them)))


def estimate_queue(queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]) -> QueueEstimate:
    """Equal seeds give equal answers to equal questions, as long as there is time for all futures."""
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
    bands = {name: band(_likeliest(found), now=queue.now) for name, found in waits.items()}
    return QueueEstimate(by_job={name: found for name, found in bands.items() if found}, is_cut=is_cut)


def _likeliest(waits: Mapping[float, Sequence[timedelta]]) -> Sequence[timedelta]:
    """Those of the futures into which most jobs come; by the share of jobs that come."""
    return waits[max(waits)] if waits else ()


def _futures(queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]) -> Iterator[_Drawn]:
    """The last one may be cut.

    Where more come that go first than can start, that cannot last: then half of them come, or half of those,
    until all jobs have started in some future. From then on they all come in every other one, for the sake of
    the jobs that start in spite of them.
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
    """Those that go before the last one; behind whom else they go, the planner says."""
    saves = [job.has_checkpoint for job in queue.waiting]
    return Arrivals(
        pool=queue.pool,
        run_times=queue.run_times,
        saving=mean([*saves, *(job.has_checkpoint for job in queue.snapshot.running)]),
        asking=max(queue.waiting, key=lambda job: job.rank),
        now=queue.now,
    )
