"""Looks for jobs and arrays that wait for others which have ended, and for tasks not held as their array is.

A message was lost, or nobody left one. That happens after a release that knows no conditions was rolled back
to, a table was restored, or a request to hold an array was overtaken by one that released it. Each run
looks at some of the waiting jobs and arrays of a few pools, so its cost does not grow with their number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.task_recounts import existing_names
from trainmaster.core.jobs.end_conditions import NOT_YET, Condition, EndedParent
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.lifecycle.dependents import ended_in_array, ended_parent
from trainmaster.core.lifecycle.task_ends import misses_the_hold, misses_the_release
from trainmaster.core.outbox.derive import message_of_parent
from trainmaster.ports import Clock, JobStore, PoolReader, QueueReader
from trainmaster.ports.array_tables import ArrayReader
from trainmaster.services.array_jobs import message_to_jobs
from trainmaster.services.deadline import Deadline

MOST_JOBS = 50
"""Jobs of one pool and run; their parents are read with them."""
MOST_ARRAYS = 10
"""Open arrays of one pool and run; a row may have 16 KB."""
MOST_TASKS = 100
"""Jobs of one array and run that are compared with it; the next run begins behind them."""
MOST_POOLS = 20
"""Pools of one run; the next one begins behind them."""
GRACE_MS = 5 * 60 * 1000
"""A parent that ended a moment ago has left a message that a pass is about to do."""


class SweptTable(PoolReader, ArrayReader, Protocol):
    """Reads jobs and arrays by name."""


@dataclass(slots=True, kw_only=True)
class DependencySweep:
    """Leaves a message again: of an end that somebody waits for, of an array whose jobs do not follow it."""

    queue: QueueReader
    table: SweptTable
    store: JobStore
    clock: Clock
    _upto: dict[str, str] = field(default_factory=dict)
    """Last job that this process looked at, by pool; a new process begins again."""
    _arrays_upto: dict[str, str] = field(default_factory=dict)
    """Mark of the last open array that it looked at, by pool."""
    _tasks_upto: dict[str, int] = field(default_factory=dict)
    """Position behind the last task that it compared with its array, by array."""
    _next_pool: int = 0

    def run(self, pools: Sequence[str], deadline: Deadline) -> Iterator[Exception]:
        """Look at some pools; yields what could not be done, for the next run."""
        for _ in range(min(MOST_POOLS, len(pools))):
            if deadline.is_over:
                return
            pool = pools[self._next_pool % len(pools)]
            self._next_pool += 1
            try:
                self._look_at(pool)
            except Exception as error:  # noqa: BLE001  one pool must not keep the others waiting
                yield error

    def _look_at(self, pool: str) -> None:
        arrays = self._open_arrays(pool)
        # One that is there already stays as it is.
        behind = [array for array in arrays if self._has_jobs_behind(array)]
        self.store.leave(pool, [message_to_jobs(array, at=self.clock()) for array in behind])
        children = [*self._waiting_jobs(pool), *(array.template for array in arrays)]
        conditions = [
            condition
            for child in children
            if child.waits_for_others and child.after is not None
            for condition in child.after.open
        ]
        for parents_pool, parent in self._ended(conditions):
            self.store.leave(parents_pool, [message_of_parent(parent, at=self.clock())])

    def _waiting_jobs(self, pool: str) -> Sequence[Job]:
        after = (epoch_ms(NOT_YET), self._upto.get(pool, ""))
        entries = self.queue.parked(pool, after=after, limit=MOST_JOBS)
        self._upto[pool] = entries[-1].name if len(entries) == MOST_JOBS else ""
        return tuple(self.table.jobs(entry.name for entry in entries).values()) if entries else ()

    def _open_arrays(self, pool: str) -> Sequence[Array]:
        marks = self.table.open_arrays(pool, after=self._arrays_upto.get(pool, ""), limit=MOST_ARRAYS)
        self._arrays_upto[pool] = marks[-1][0] if len(marks) == MOST_ARRAYS else ""
        return tuple(self.table.arrays(name for _, name in marks).values()) if marks else ()

    def _has_jobs_behind(self, array: Array) -> bool:
        """Tell whether tasks wait though their array is held, or are held by it though it was released."""
        if not (array.jobs.waiting if array.held else array.jobs.held):
            return False
        first = self._tasks_upto.pop(array.name, 0)
        places = [(name, place) for name, place in existing_names(array).items() if place >= first]
        if len(places) > MOST_TASKS:
            self._tasks_upto[array.name] = places[MOST_TASKS][1]
        jobs = self.table.jobs(name for name, _ in places[:MOST_TASKS]).values()
        return any(misses_the_hold(job, array) or misses_the_release(job, array) for job in jobs)

    def _ended(self, conditions: Sequence[Condition]) -> Iterator[tuple[str, EndedParent]]:
        """Yield the parents that ended long ago, each once, with the pools that their messages belong to."""
        by_entry = {condition.entry_id: condition for condition in conditions}
        names = sorted({condition.job for condition in by_entry.values()})
        jobs = self.table.jobs(names) if names else {}
        stems = {condition.array for condition in by_entry.values() if condition.array is not None}
        arrays = self.table.arrays(sorted(stems)) if stems else {}
        for condition in by_entry.values():
            job, array = jobs.get(condition.job), arrays.get(condition.array or "")
            if job is not None and job.spec.entry_id == condition.entry_id:
                if self._ended_long_ago(job):
                    yield job.spec.pool, ended_parent(job)
            elif array is not None and (parent := ended_in_array(array, condition)) is not None:
                yield array.template.spec.pool, parent

    def _ended_long_ago(self, parent: Job) -> bool:
        if not parent.is_final or parent.ended_at is None:
            return parent.is_final
        return epoch_ms(self.clock()) - epoch_ms(parent.ended_at) >= GRACE_MS
