"""Estimate when each waiting job starts: every future is rolled forward once for the whole queue.

The instants follow from the pool's state alone: whoever looks, and whenever, gets the same ones until a job
enters, starts or ends, or until a start that was expected has passed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import mean

from trainmaster.core.forecast.arrivals import Arrivals
from trainmaster.core.forecast.durations import Durations, LaneKey, lane_of
from trainmaster.core.forecast.estimate_anchor import later_anchor, newest_fact, seed_of
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
    pool: PoolPolicy
    run_times: Mapping[LaneKey, RunTimes] = field(default_factory=dict)
    now: datetime
    """The instant of the look. Scores and ranks are those of ``newest_fact``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEstimate:
    by_job: Mapping[str, StartEstimate]
    """Estimate of each job that starts in a drawn future, by job name."""
    is_cut: bool = False
    """No whole future was seen: jobs towards the end have a rough estimate or none for that reason."""
    is_late: bool = False
    """The clock ended the work, not the count of looks: another look may have a slightly different answer."""


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
        self._decide()
        while not self.grows and (places := self._places_left()):
            if self.looks >= MOST_LOOKS or not in_time():
                self._extrapolate_starts(places)
                return False
            interval_end = self._next_interval()
            if interval_end is None or self._now - self._outlook.now > HORIZON:
                return True
            self._let_pass(interval_end)
            if self._now - self._outlook.now > PATIENCE:
                self.grows = self._falls_behind(places[0])
        return True

    def _places_left(self) -> list[int]:
        """Return the places, from 0, of the jobs that have not started."""
        in_turn = enumerate(self._outlook.waiting)
        return [place for place, job in in_turn if job.name not in self.starts]

    def _extrapolate_starts(self, places: Sequence[int]) -> None:
        """Let the rest of the queue start at the pace so far, as long as there is time to say so."""
        for place in places:
            if not self._in_time():
                return
            job = self._outlook.waiting[place]
            wait = self._extrapolated(place, self._queue.count_before(job))
            if wait is not None:
                self.starts[job.name] = self._outlook.now + wait

    def _falls_behind(self, place: int) -> bool:
        """Tell whether no fewer jobs are ahead than at first; they are ahead of the jobs behind it too."""
        job = self._outlook.waiting[place]
        return job.name not in self.starts and self._queue.count_before(job) >= max(place, 1)

    def _start(self, action: Start) -> datetime:
        at = super()._start(action)
        self.starts.setdefault(action.job.name, at)
        return at


def is_too_much(snapshot: Snapshot) -> bool:
    """Tell whether every step of a future would take too long."""
    return len(snapshot.running) > MOST_RUNNING


def estimable(waiting: Sequence[WaitingJob]) -> tuple[WaitingJob, ...]:
    """Return the first jobs of a queue, up to the one that would be of a shape too many."""
    lanes = set[LaneKey]()
    for count, job in enumerate(waiting):
        lanes.add(lane_of(job))
        if len(lanes) > MOST_SHAPES:
            return tuple(waiting[:count])
    return tuple(waiting)


def lanes_of_queue(queue: WholeQueue) -> tuple[LaneKey, ...]:
    """Return the lanes whose run times the estimate needs."""
    running = Counter(lane_of(job) for job in queue.snapshot.running)
    most_of_them = (lane for lane, _ in running.most_common(MOST_SHAPES))
    return tuple(dict.fromkeys((*(lane_of(job) for job in queue.waiting), *most_of_them)))


class _Watch:
    """The caller's deadline, and whether it has passed."""

    def __init__(self, in_time: Callable[[], bool]) -> None:
        self._in_time = in_time
        self.is_over = False

    def __call__(self) -> bool:
        self.is_over = self.is_over or not self._in_time()
        return not self.is_over


def estimate_queue(queue: WholeQueue, *, in_time: Callable[[], bool] = lambda: True) -> QueueEstimate:
    """Estimate all starts as of the newest fact, or of a later rung once the first of them has passed.

    The work is bounded by ``MOST_DRAWS`` and ``MOST_LOOKS``; ``in_time`` is a safeguard for slow machines.
    """
    if queue.snapshot.blocked or not queue.waiting:
        return QueueEstimate(by_job={})
    watch = _Watch(in_time)
    seed = seed_of(queue.snapshot, queue.waiting)
    anchor = newest_fact(queue.snapshot, queue.waiting, now=queue.now)
    answer = _estimated_at(anchor, queue, seed=seed, in_time=watch)
    first = min((start.p50 for start in answer.by_job.values()), default=None)
    if first is not None and first <= queue.now:
        later = later_anchor(anchor, first, now=queue.now)
        answer = _estimated_at(later, queue, seed=seed, in_time=watch)
    return replace(answer, is_late=watch.is_over)


def _estimated_at(
    anchor: datetime, queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]
) -> QueueEstimate:
    """Draw futures from an instant; equal seeds give equal answers if there is time for all of them."""
    queue = replace(queue, now=anchor)
    waits = {job.name: dict[float, list[timedelta]]() for job in queue.waiting}
    is_cut = True
    for drawn in _futures(queue, seed=seed, in_time=in_time):
        if drawn.is_cut and not is_cut:
            break  # what it knows of the first jobs alone would make those behind look early
        is_cut = is_cut and not drawn.is_whole
        for name in waits.keys() & drawn.starts.keys():
            waits[name].setdefault(drawn.share, []).append(drawn.starts[name] - anchor)
    bands = {name: band(_likeliest(drawn), now=anchor) for name, drawn in waits.items()}
    return QueueEstimate(by_job={name: start for name, start in bands.items() if start}, is_cut=is_cut)


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
