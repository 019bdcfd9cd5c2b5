"""The jobs that wait in one drawn future, in lanes: one for each team and what its jobs ask for."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.index_sets import bits_of
from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.candidates import HEADS
from trainmaster.core.planning.changes import (
    ArrayChange,
    ArrayEnded,
    ArrayHeld,
    ArrayTrimmed,
    TasksDropped,
    TasksExpanded,
)
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob

Lane = tuple[str, str]
"""A team, and the text of what its jobs ask for."""

_rank = attrgetter("rank")


class FutureQueue:
    def __init__(self, waiting: Iterable[WaitingJob]) -> None:
        self._lanes: dict[Lane, list[WaitingJob]] = {}
        self.names: set[str] = set()
        for job in waiting:
            self.add(job)

    def add(self, job: WaitingJob) -> None:
        insort(self._lanes.setdefault(_lane(job), []), job, key=_rank)
        self.names.add(job.name)

    def remove(self, job: WaitingJob) -> None:
        lane = self._lanes[_lane(job)]
        lane.remove(job)
        if not lane:
            del self._lanes[_lane(job)]
        self.names.discard(job.name)

    def count_before(self, job: WaitingJob) -> int:
        """Count the jobs that go before this one, which need not wait here itself."""
        return sum(bisect_left(lane, job.rank, key=_rank) for lane in self._lanes.values())

    def heads(self) -> tuple[WaitingJob, ...]:
        """Return the first jobs of each lane, as many as one plan can look at."""
        return tuple(chain.from_iterable(lane[:HEADS] for lane in self._lanes.values()))


def _lane(job: WaitingJob) -> Lane:
    return (job.team, lane_text(job.shapes, job.choice))


class FutureArrays:
    """The arrays of one pool, as a future has changed them. In a future every task completes."""

    def __init__(self, arrays: Iterable[Array], running: Iterable[RunningJob]) -> None:
        self._arrays = {array.name: array for array in arrays}
        self._array_of = {job.name: job.array for job in running if job.array is not None}

    @property
    def all(self) -> tuple[Array, ...]:
        return tuple(self._arrays.values())

    def take(self, change: ArrayChange) -> tuple[WaitingJob, ...]:
        """Take a change over; return the tasks that wait as jobs from now on."""
        name = change.array.name
        match change:
            case TasksExpanded():
                self._arrays[name] = change.after
                return tuple(waiting_entry(job) for job in change.jobs)
            case TasksDropped(array=array, positions=dropped):
                self._arrays[name] = replace(array, unexpanded=array.unexpanded & ~bits_of(dropped))
            case ArrayHeld():
                self._arrays[name] = replace(change.array, held=True, recent=())
            case ArrayTrimmed():
                self._arrays[name] = replace(change.array, recent=())
            case ArrayEnded():
                del self._arrays[name]
        return ()

    def started(self, action: Start) -> None:
        """Count a task that runs from now on."""
        array = self._arrays.get(action.job.array or "")
        if array is not None:
            jobs = replace(array.jobs, waiting=array.jobs.waiting - 1, running=array.jobs.running + 1)
            self._arrays[array.name] = replace(array, jobs=jobs)
            self._array_of[action.job.name] = array.name

    def ended(self, job: str, *, waits_again: bool) -> None:
        """Count a task that holds no instances any more: it has completed, or was stopped for another job."""
        array = self._arrays.get(self._array_of.pop(job, ""))
        if array is not None:
            waiting = array.jobs.waiting + int(waits_again)
            jobs = replace(array.jobs, waiting=waiting, running=array.jobs.running - 1)
            self._arrays[array.name] = replace(array, jobs=jobs)
