"""ArrayStore and ArrayReader over ``Tables``."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.core.arrays.array_model import (
    MOST_RECENT_CHARACTERS,
    Array,
    ArrayRequest,
    TaskEnds,
    TaskJobs,
    unpacked_request,
)
from trainmaster.core.arrays.array_steps import array_parents
from trainmaster.core.arrays.tasks import parse_task_name, position_of, task_name
from trainmaster.core.errors import LostRaceError, TaskNameError
from trainmaster.core.jobs.index_sets import bits_of
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change, failure_class
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.throttles import Throttle
from trainmaster.core.records import Admission, Alias, HistoryLine

from tests.memory.dependencies import put_dependents, require_parents
from tests.memory.history import remember_events, remember_submission
from tests.memory.tables import Tables


def require_no_task(tables: Tables, name: str) -> None:
    """Raise TaskNameError where a task of an array has the name."""
    task = parse_task_name(name)
    array = None if task is None else tables.arrays.get(task.array)
    if task is not None and array is not None and position_of(array, task.index) is not None:
        raise TaskNameError(f"task {task.index} of array {task.array} has this name")


def require_throttles(tables: Tables, throttles: Iterable[Throttle], changes: Sequence[Change]) -> None:
    """Raise LostRaceError where an array lets fewer of its tasks run."""
    for throttle in throttles:
        array = seen(tables, tables.arrays[throttle.array])
        tasks = (change.after.spec.array for change in changes)
        starts = sum(task is not None and task.name == array.name for task in tasks)
        if array.held or array.at_most != throttle.at_most:
            raise LostRaceError(f"{array.name} changed")
        if array.at_most is not None and array.jobs.running + starts > array.at_most:
            raise LostRaceError(f"{array.name} has as many tasks as may run")


def note_end(tables: Tables, change: Change) -> None:
    """Keep the class of a task's end."""
    task, is_over = change.after.spec.array, change.after.is_final and not change.before.is_final
    if task is None or not is_over or change.after.state is JobState.COMPLETED:
        return
    failed = change.after.state is JobState.FAILED
    text = failure_class(change)[:MOST_RECENT_CHARACTERS] if failed else ""
    array = tables.arrays[task.name]
    tables.arrays[task.name] = replace(array, recent=(*array.recent, text))


def seen(tables: Tables, array: Array) -> Array:
    """The array with what its tasks' jobs add to it, counted from them."""
    names = {task_name(array.name, index): place for place, index in enumerate(array.indices)}
    jobs = [job for name in names if (job := tables.jobs.get(name)) is not None]
    ours = [job for job in jobs if job.spec.array is not None and job.spec.array.name == array.name]

    def ended(state: JobState) -> int:
        return bits_of(names[job.name] for job in ours if job.state is state)

    counted = TaskJobs(
        waiting=sum(job.is_waiting for job in ours),
        held=sum(job.state is JobState.HELD for job in ours),
        running=sum(job.is_live for job in ours),
    )
    ends = TaskEnds(
        completed=ended(JobState.COMPLETED),
        failed=array.ends.failed | ended(JobState.FAILED),
        stopped=array.ends.stopped | ended(JobState.STOPPED),
        name_taken=array.ends.name_taken,
        orphaned=array.ends.orphaned,
    )
    return replace(array, jobs=counted, ends=ends)


class MemoryArrayReads:
    """ArrayReader."""

    _tables: Tables

    def array(self, name: str) -> Array | None:
        array = self._tables.arrays.get(name)
        return None if array is None else seen(self._tables, array)

    def arrays(self, names: Iterable[str]) -> dict[str, Array]:
        arrays = {name: self.array(name) for name in names}
        return {name: array for name, array in arrays.items() if array is not None}

    def array_request(self, name: str) -> ArrayRequest:
        return unpacked_request(self._tables.array_requests[name])

    def open_arrays(self, pool: str | None, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        arrays = (array for array in self._tables.arrays.values() if array.ended_at is None)
        marks = sorted((f"{array.template.spec.pool}#{array.name}", array.name) for array in arrays)
        ours = (mark for mark in marks if pool is None or mark[0].startswith(f"{pool}#"))
        return tuple(mark for mark in ours if mark[0] > after)[:limit]

    def ended_arrays(self, team: str, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        arrays = [array for array in self._tables.arrays.values() if array.ended_at is not None]
        ours = [array for array in arrays if array.template.spec.team == team]
        marks = sorted(((f"{array.ended_at}#{array.name}", array.name) for array in ours), reverse=True)
        return tuple(mark for mark in marks if not after or mark[0] < after)[:limit]

    def _pool_arrays(self, pool: str) -> tuple[Array, ...]:
        arrays = self.arrays(name for _, name in self.open_arrays(pool, after="", limit=1000))
        parents = {name for array in arrays.values() for name, _ in array_parents(array)}
        return tuple((arrays | self.arrays(sorted(parents))).values())


class MemoryArrayWrites:
    """ArrayStore."""

    _tables: Tables
    _admit: Callable[[Job, Admission], None]

    def submit_array(self, array: Array, request: ArrayRequest, admission: Admission) -> None:
        tables, template = self._tables, array.template
        if array.name in tables.aliases:
            raise LostRaceError("the name is in use")
        require_no_task(tables, array.name)
        conditions = () if template.after is None else template.after.conditions
        require_parents(tables, conditions)
        self._admit(template, admission)
        put_dependents(tables, template, conditions, is_array=True)
        tables.arrays[array.name] = array
        tables.array_requests[array.name] = request.packed()
        tables.aliases[array.name] = Alias(job=array.name, entry_id=array.entry_id, attempt=0)

    def expand(
        self, array: Array, tasks: Sequence[tuple[Job, Mapping[str, Any]]], *, at: datetime
    ) -> frozenset[int]:
        tables = self._tables
        if tables.arrays[array.name].ver != array.ver:
            raise LostRaceError(f"{array.name} changed")
        places = {job.name: job.spec.array.position for job, _ in tasks if job.spec.array is not None}
        taken = frozenset(place for name, place in places.items() if name in tables.aliases)
        if taken:
            return taken
        for job, body in tasks:
            tables.jobs[job.name], tables.changed_at[job.name] = job, at
            tables.requests[job.name] = json.dumps(body).encode()
            tables.aliases[job.name] = Alias(job=job.name, entry_id=job.spec.entry_id, attempt=0)
            line = HistoryLine(at=at, attempt=0, from_state=None, to_state=job.state, reason=None)
            tables.lines[job.spec.entry_id].append(line)
            remember_submission(tables, job)
        stored = tables.arrays[array.name]
        left = stored.unexpanded & ~bits_of(places.values())
        awaited = stored.awaited - {job.spec.array.index for job, _ in tasks if job.spec.array is not None}
        tables.arrays[array.name] = replace(stored, unexpanded=left, awaited=awaited, ver=array.ver + 1)
        return frozenset()

    def commit_array(self, before: Array, after: Array, *, messages: Sequence[OutboxMessage] = ()) -> Array:
        stored = self._tables.arrays[before.name]
        has_children = bool(stored.template.has_dependents)
        if stored.ver != before.ver or before.recent not in (after.recent, stored.recent):
            raise LostRaceError(f"{before.name} changed")
        if after.ended_at is not None and has_children is not bool(before.template.has_dependents):
            raise LostRaceError(f"{before.name} has children")
        recent = stored.recent if after.recent == before.recent else after.recent
        written = replace(after, ver=before.ver + 1, recent=recent)
        self._tables.arrays[before.name] = written
        pool = before.template.spec.pool
        self._tables.messages |= {(pool, message.id): message for message in messages}
        remember_events(self._tables, messages)
        return written
