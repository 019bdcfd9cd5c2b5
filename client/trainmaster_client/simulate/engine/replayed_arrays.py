"""Arrays of a replayed pool: one entry each until their tasks become jobs, as in the product's table.

The history has the tasks that became jobs, in the order of their indices; each keeps the name and the course
that it has there. A task's position in the replayed array is its rank among them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from trainmaster.core.arrays.array_model import MOST_RECENT_CHARACTERS, Array, TaskEnds, TaskJobs
from trainmaster.core.jobs.index_sets import TaskOf
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change, failure_class
from trainmaster.core.planning.changes import ArrayEnded, ArrayHeld, ArrayTrimmed, TasksExpanded

from trainmaster_client.simulate.engine.past_jobs import PastArray
from trainmaster_client.simulate.engine.simulated_sagemaker import SimulatedSageMaker


@dataclass(slots=True, kw_only=True)
class ReplayedArrays:
    by_key: dict[str, Array] = field(default_factory=dict)
    """Arrays that have not ended, by ``PastArray.key``."""
    tasks: dict[str, dict[int, Job]] = field(default_factory=dict)
    """Tasks that are no jobs yet, by array and position."""
    array_of: dict[str, TaskOf] = field(default_factory=dict)
    """The array and position of each of them, by name."""

    @property
    def has_open(self) -> bool:
        return bool(self.by_key)

    @property
    def all(self) -> tuple[Array, ...]:
        return tuple(self.by_key.values())

    def add(self, job: Job, past: PastArray) -> None:
        """Take in a task as it is submitted: it becomes a job when the planner expands its array."""
        array = self.by_key.get(past.key) or _empty(job, past)
        position = len(array.indices)
        task = TaskOf(name=past.key, index=position, position=position)
        self.by_key[past.key] = replace(
            array, indices=(*array.indices, position), unexpanded=array.unexpanded | 1 << position
        )
        self.array_of[job.name] = task
        waiting = self.tasks.setdefault(past.key, {})
        waiting[position] = replace(job, spec=replace(job.spec, array=task))

    def expand(self, change: TasksExpanded) -> Iterator[Job]:
        """Yield the jobs that tasks become."""
        key = change.array.name
        self.by_key[key] = change.after
        for position in change.positions:
            job = self.tasks[key].pop(position)
            del self.array_of[job.name]
            yield job

    def change(self, change: ArrayHeld | ArrayEnded | ArrayTrimmed) -> None:
        """Take over a change of the plan that is about no single task."""
        key = change.array.name
        match change:
            case ArrayHeld():
                self.by_key[key] = replace(change.array, held=True, recent=())
            case ArrayTrimmed():
                self.by_key[key] = replace(change.array, recent=())
            case ArrayEnded():
                del self.by_key[key]
                self.tasks.pop(key, None)

    def release(self, key: str) -> bool:
        """Let a held array's tasks start again; False if it is not held any more."""
        array = self.by_key.get(key)
        if array is None or not array.held:
            return False
        self.by_key[key] = replace(array, held=False)
        return True

    def withdraw(self, name: str) -> None:
        """End a task that is no job yet."""
        task = self.array_of.pop(name)
        array = self.by_key[task.name]
        bit = 1 << task.position
        ends = replace(array.ends, stopped=array.ends.stopped | bit)
        self.by_key[task.name] = replace(array, unexpanded=array.unexpanded & ~bit, ends=ends)
        del self.tasks[task.name][task.position]

    def follow(self, change: Change) -> None:
        """Count a task whose job has moved, as the table does in the job's transaction."""
        task = change.after.spec.array
        if task is None or change.before.state is change.after.state:
            return
        array = self.by_key[task.name]
        jobs = _counted(_counted(array.jobs, change.before, -1), change.after, +1)
        ends, recent = array.ends, array.recent
        if change.after.is_final:
            ends = _with_end(ends, change.after.state, 1 << task.position)
            if change.after.state is not JobState.COMPLETED:
                has_failed = change.after.state is JobState.FAILED
                recent = (*recent, failure_class(change)[:MOST_RECENT_CHARACTERS] if has_failed else "")
        self.by_key[task.name] = replace(array, jobs=jobs, ends=ends, recent=recent)

    def names(self, key: str) -> list[str]:
        """Return the names of the tasks of an array that are no jobs yet."""
        return [job.name for job in self.tasks.get(key, {}).values()]

    def running(self, key: str) -> int:
        array = self.by_key.get(key)
        return 0 if array is None else array.jobs.running

    def fork(self) -> Self:
        tasks = {key: dict(waiting) for key, waiting in self.tasks.items()}
        return replace(self, by_key=dict(self.by_key), tasks=tasks, array_of=dict(self.array_of))


def _empty(job: Job, past: PastArray) -> Array:
    template = replace(job, spec=replace(job.spec, name=past.key))
    return Array(
        template=template,
        indices=(),
        unexpanded=0,
        at_most=past.at_most,
        stop_after_failures=past.stop_after_failures,
    )


def _counted(jobs: TaskJobs, job: Job, sign: int) -> TaskJobs:
    if job.is_final:
        return jobs
    if job.is_live:
        return replace(jobs, running=jobs.running + sign)
    if job.state is JobState.HELD:
        return replace(jobs, held=jobs.held + sign)
    return replace(jobs, waiting=jobs.waiting + sign)


def _with_end(ends: TaskEnds, state: JobState, bit: int) -> TaskEnds:
    match state:
        case JobState.COMPLETED:
            return replace(ends, completed=ends.completed | bit)
        case JobState.FAILED:
            return replace(ends, failed=ends.failed | bit)
        case _:
            return replace(ends, stopped=ends.stopped | bit)


def release_second(unstarted: Iterable[str], sagemaker: SimulatedSageMaker) -> float | None:
    """Return when a user releases an array that is held now: when the history has its next task start.

    Args:
        unstarted: Its tasks that have not started in the replay.
        sagemaker: Knows when each really started.

    Returns:
        Seconds since the beginning; None if none of them started in the history: then it stays held.
    """
    pasts = (sagemaker.courses[name].past for name in unstarted)
    starts = [past.attempts[0].started_at for past in pasts if past.attempts]
    return max(sagemaker.second(min(starts)), sagemaker.event_queue.now) if starts else None
