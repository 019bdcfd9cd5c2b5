"""When all the jobs that wait are likely to start: each future is rolled forward once for everybody."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import mean

from trainmaster.core.forecast.arrivals import Arrivals
from trainmaster.core.forecast.durations import Durations, LaneKey, lane_of
from trainmaster.core.forecast.forecast import HORIZON, Future, Outlook
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


_NOBODY = ""
"""The name of no job: whoever waits for it sees a whole future."""


class WholeFuture(Future):
    """One draw for all jobs: when each of them started first."""

    def __init__(self, outlook: Outlook, arrivals: Iterator[WaitingJob], chance: Chance) -> None:
        super().__init__(outlook, arrivals, chance)
        self.starts: dict[str, datetime] = {}

    def let_all_start(self, names: frozenset[str], *, in_time: Callable[[], bool]) -> bool:
        """False: time or looks did not suffice for all of them, or for seeing that they never start."""
        self._in_time = in_time
        self._decide(_NOBODY)
        while not names <= self.starts.keys():
            if self.looks >= MOST_LOOKS or not in_time():
                return False
            interval_end = self._next_interval()
            if interval_end is None or self._now - self._outlook.now > HORIZON:
                return True
            self._let_pass(interval_end, _NOBODY)
        return True

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
    waits: dict[str, list[timedelta]] = {job.name: [] for job in queue.waiting}
    is_cut = False
    for starts, is_whole in _futures(queue, seed=seed, in_time=in_time):
        is_cut = not is_whole and not any(waits.values())
        if not is_whole and not is_cut:
            break  # what it knows of the first jobs alone would make those behind look early
        for name in waits.keys() & starts.keys():
            waits[name].append(starts[name] - queue.now)
    drawn = {name: band(found, now=queue.now) for name, found in waits.items()}
    by_job = {name: found for name, found in drawn.items() if found is not None}
    return QueueEstimate(by_job=by_job, is_cut=is_cut or not any(waits.values()))


def _futures(
    queue: WholeQueue, *, seed: str, in_time: Callable[[], bool]
) -> Iterator[tuple[Mapping[str, datetime], bool]]:
    """Starts by job, and whether the future was seen to its end; the last one may not have been."""
    if not in_time():
        return
    outlook, arrivals = _outlook(queue), _arrivals(queue)
    names, looks = frozenset(job.name for job in queue.waiting), 0
    for number in range(MOST_DRAWS):
        future = WholeFuture(outlook, arrivals.drawn(f"{seed}/{number}"), Chance(f"{seed}/{number}"))
        is_whole = future.let_all_start(names, in_time=in_time)
        yield future.starts, is_whole
        looks += future.looks
        if not is_whole or looks + future.looks > MOST_LOOKS or not in_time():
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
