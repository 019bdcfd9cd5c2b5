"""Counts of an array by the jobs that its tasks became: its row should say the same.

The row is kept by the changes of its tasks. A release that knows no arrays writes their jobs without the
array's name and adds nothing to the row, so after it was rolled back to the two may differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from trainmaster.core.arrays.array_model import Array, TaskJobs
from trainmaster.core.arrays.tasks import task_entry_id, task_name, task_of
from trainmaster.core.jobs.index_sets import bits_of, positions, ranges_text
from trainmaster.core.jobs.model import Job, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecount:
    """An array as its jobs have it, and the jobs that have forgotten that they are its tasks."""

    after: Array
    linked: tuple[Job, ...]
    """Jobs without the array's name, with it; their versions are those that were read."""


def existing_names(array: Array) -> dict[str, int]:
    """Return the positions of the tasks that the row counts as jobs, by the names of the jobs."""
    return {task_name(array.name, array.indices[place]): place for place in positions(array.existing)}


def recount_tasks(array: Array, jobs: Mapping[str, Job]) -> TaskRecount:
    """Count the tasks that the row has as jobs again.

    Sums of time and cost stay: whether an attempt was added to them cannot be seen afterwards.

    Args:
        array: As its row is.
        jobs: All jobs of ``existing_names`` that are stored. Only jobs that have ended are ever deleted, so a
            task whose job is gone has ended; as nothing says how, it counts as stopped.
    """
    tasks = {place: _task(array, place, jobs.get(name)) for name, place in existing_names(array).items()}
    known = [task for task in tasks.values() if task is not None]

    def ended(state: JobState) -> int:
        return bits_of(place for place, task in tasks.items() if task is not None and task.state is state)

    gone = bits_of(place for place, task in tasks.items() if task is None)
    ends = replace(
        array.ends,
        completed=array.ends.completed | ended(JobState.COMPLETED),
        failed=array.ends.failed | ended(JobState.FAILED),
        stopped=array.ends.stopped | ended(JobState.STOPPED) | gone,
    )
    counted = TaskJobs(
        waiting=sum(task.is_waiting for task in known),
        held=sum(task.state is JobState.HELD for task in known),
        running=sum(task.is_live for task in known),
    )
    forgetful = (task for task in known if jobs[task.name].spec.array is None)
    return TaskRecount(after=replace(array, jobs=counted, ends=ends), linked=tuple(forgetful))


def _task(array: Array, position: int, job: Job | None) -> Job | None:
    """Return a job as the task that it is; None: there is none, or another submission has the name."""
    index = array.indices[position]
    if job is None or job.spec.entry_id != task_entry_id(array.entry_id, index):
        return None
    if job.spec.array is not None:
        return job
    return replace(job, spec=replace(job.spec, array=task_of(array, position)))


def counts_as_text(array: Array) -> Iterator[tuple[str, int | str]]:
    """Yield what a repair compares of an array's row, by the name that its report uses."""
    yield "waiting", array.jobs.waiting
    yield "held", array.jobs.held
    yield "running", array.jobs.running
    yield "completed", ranges_text(array.indices_at(array.ends.completed))
    yield "failed", ranges_text(array.indices_at(array.ends.failed))
    yield "stopped", ranges_text(array.indices_at(array.ends.stopped))
