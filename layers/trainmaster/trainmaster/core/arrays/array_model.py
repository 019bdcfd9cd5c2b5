"""The model of an array: its request as a job that never starts, its indices, what became of each task.

A task has a *position*, the number of lower indices. It is a bit there in ``unexpanded``, or it exists as a
job and is counted by that job's state, or it is a bit in one of the numbers of tasks that have ended.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.index_sets import all_bits, positions
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode

MOST_WAITING_JOBS = 32
"""Waiting tasks of one array that exist as jobs; the rest costs a pass nothing."""
DEFAULT_STOP_AFTER = 10
"""``stop_after_failures`` of an array that sets none."""
MOST_STOP_AFTER = 100
"""Highest ``stop_after_failures``: so many ends are kept in the array's row."""
MOST_RECENT_CHARACTERS = 24
"""Characters of a failure class that the row keeps."""


class ArrayState(StrEnum):
    PENDING = "pending"
    """No task has started."""
    HELD = "held"
    RUNNING = "running"
    COMPLETED = "completed"
    """All tasks completed."""
    FAILED = "failed"
    """All tasks have ended, and at least one did not complete."""
    STOPPED = "stopped"
    """The whole of it was cancelled, or it ended for a job that it was to run after."""


FINAL_ARRAY_STATES = frozenset({ArrayState.COMPLETED, ArrayState.FAILED, ArrayState.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskJobs:
    """Counts the tasks of an array that exist as jobs and have not ended, by the states of the jobs."""

    waiting: int = 0
    held: int = 0
    running: int = 0
    """Those that hold instances, starting to stopping."""

    @property
    def total(self) -> int:
        return self.waiting + self.held + self.running


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnds:
    """Tasks that have ended, as bits at their positions."""

    completed: int = 0
    failed: int = 0
    stopped: int = 0
    name_taken: int = 0
    """Those of ``failed`` that never became a job, because one had the name."""
    orphaned: int = 0
    """Those of ``stopped`` that never became a job, because a task that they were to run after failed."""

    @property
    def all(self) -> int:
        return self.completed | self.failed | self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySums:
    """Expenses of the attempts of an array's tasks that have ended."""

    instance_seconds: int = 0
    cents: int = 0
    unpriced: int = 0
    """Number of attempts without a known price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """How many tasks are where; they add up to ``total``."""

    total: int
    waiting: int
    held: int
    running: int
    completed: int
    failed: int
    stopped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The indices of an array as its tasks are informed of them, to split work among themselves."""

    count: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """Many tasks of one request, as the table keeps them."""

    template: Job
    """The job that each task is made from; its conditions, priority and score are those of the array."""
    indices: tuple[int, ...]
    """Indices of its tasks, in ascending order."""
    unexpanded: int
    """Bits of the tasks that do not exist as jobs yet and have not ended."""
    ver: int = 0
    """Rises with each write that is conditional on the row as it was read."""
    at_most: int | None = None
    """Tasks that may hold instances at once; None: as many as fit."""
    stop_after_failures: int = DEFAULT_STOP_AFTER
    """Equal failures in a row after which the array is held while no task has completed; 0: never."""
    held: bool = False
    """A user, or equal failures, keep its waiting tasks from starting."""
    held_because: str | None = None
    jobs: TaskJobs = TaskJobs()
    ends: TaskEnds = TaskEnds()
    sums: ArraySums = ArraySums()
    recent: tuple[str, ...] = ()
    """Classes of the last tasks to end, "" for one that was stopped, while none has completed."""
    awaited: frozenset[int] = frozenset()
    """Indices of tasks that other jobs wait for although they do not exist as jobs yet."""
    to_stop: int = 0
    """Bits of the tasks that somebody wants stopped although they are jobs, ended meanwhile or not."""
    stopped_by: str | None = None
    """ARN of who asked last for tasks to be stopped."""
    cancelled: bool = False
    """The whole of it was cancelled."""
    ended_at: datetime | None = None
    rerun_of: str | None = None
    first_numbering: Numbering | None = None
    """Numbering of the array whose tasks it runs again: they resume the part of the work that they had. None:
    it is no rerun, or an earlier release made it."""
    folder: str | None = None
    """Folder that is put behind each task's checkpoint folder: of a rerun from the start."""

    @property
    def name(self) -> str:
        return self.template.name

    @property
    def entry_id(self) -> str:
        return self.template.spec.entry_id

    @property
    def numbering(self) -> Numbering:
        own = Numbering(count=len(self.indices), lowest=self.indices[0], highest=self.indices[-1])
        return self.first_numbering or own

    @property
    def is_ended(self) -> bool:
        """Whether every task has ended, noted or not."""
        return not self.unexpanded and not self.jobs.total

    @property
    def ended_for_parent(self) -> bool:
        reason = self.template.reason
        return self.template.is_final and reason is not None and reason.code is ReasonCode.DEPENDENCY

    @property
    def state(self) -> ArrayState:
        if self.is_ended:
            return self._end_state()
        if self.jobs.running:
            return ArrayState.RUNNING
        if self.counts.held and not self.counts.waiting:
            return ArrayState.HELD
        return ArrayState.RUNNING if self.ends.completed | self.ends.failed else ArrayState.PENDING

    def _end_state(self) -> ArrayState:
        if self.ends.completed == all_bits(len(self.indices)):
            return ArrayState.COMPLETED
        return ArrayState.STOPPED if self.cancelled or self.ended_for_parent else ArrayState.FAILED

    @property
    def end(self) -> ParentEnd | None:
        """How it ended, as those that wait for it need to know; None before that."""
        return ParentEnd(self.state.value) if self.is_ended else None

    @property
    def counts(self) -> TaskCounts:
        left = self.unexpanded.bit_count()
        is_held = self.held or self.template.state is JobState.HELD
        waiting = self.jobs.waiting + left
        return TaskCounts(
            total=len(self.indices),
            waiting=0 if is_held else waiting,
            held=self.jobs.held + (waiting if is_held else 0),
            running=self.jobs.running,
            completed=self.ends.completed.bit_count(),
            failed=self.ends.failed.bit_count(),
            stopped=self.ends.stopped.bit_count(),
        )

    @property
    def existing(self) -> int:
        """Bits of the tasks that exist as jobs and have not ended."""
        return all_bits(len(self.indices)) & ~self.unexpanded & ~self.ends.all

    def indices_at(self, bits: int) -> Iterable[int]:
        """Return the indices of these positions, in ascending order."""
        return (self.indices[position] for position in positions(bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRequest:
    """The request of an array, and what differs from task to task."""

    body: Mapping[str, Any]
    columns: Mapping[str, Sequence[str | None]]
    """Hyperparameter -> its value for each task, in the order of positions; None where a task has none."""

    def values(self, position: int) -> dict[str, str]:
        """Return the hyperparameters of one task that differ from the request's."""
        chosen = ((name, column[position]) for name, column in self.columns.items())
        return {name: value for name, value in chosen if value is not None}

    def of(self, positions: Iterable[int]) -> "ArrayRequest":
        """Return the request for some of the tasks, in the order of their positions."""
        chosen = list(positions)
        columns = {name: [column[position] for position in chosen] for name, column in self.columns.items()}
        return ArrayRequest(body=self.body, columns=columns)

    def packed(self) -> bytes:
        """Return it as JSON, with keys in order, so that equal requests are equal bytes."""
        content = {"request": self.body, "values": self.columns}
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def array_request(body: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> ArrayRequest:
    """Keep the values of all tasks by name: names are written once, not once a task."""
    names = dict.fromkeys(name for row in rows for name in row)
    return ArrayRequest(body=body, columns={name: [row.get(name) for row in rows] for name in names})


def unpacked_request(content: bytes) -> ArrayRequest:
    """Read what ``packed`` has written. Raises KeyError or ValueError for anything else."""
    parts = json.loads(content)
    return ArrayRequest(body=parts["request"], columns=parts["values"])
