"""Arrays in a drawn future: their tasks become jobs, start and end, as the planner has them."""

from collections.abc import Iterable
from dataclasses import replace

from trainmaster.core.arrays.model import Array
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.changes import ArrayChange, ArrayEnded, ArrayHeld, ArrayTrimmed, TasksExpanded
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob


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
