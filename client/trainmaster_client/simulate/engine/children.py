"""The jobs of a replay that wait for the ends of others.

A child is submitted to its pool at the instant at which its last condition holds. If one can hold no more, it
ends without a start, and so may those that wait for it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from trainmaster.core.jobs.end_conditions import ConditionKind, ParentEnd, holds_after

from trainmaster_client.simulate.engine.past_jobs import PastJob


@dataclass(slots=True, kw_only=True)
class Children:
    """Children whose conditions are open, and the ends of their parents so far."""

    parents: frozenset[str] = frozenset()
    """Names of all jobs, and keys of arrays, that others have a condition on."""
    ends: dict[str, ParentEnd] = field(default_factory=dict)
    """Ends of parents, by name."""
    waiting: dict[str, PastJob] = field(default_factory=dict)
    """Children that were submitted and are not eligible yet, by name."""
    array_of: dict[str, str] = field(default_factory=dict)
    """Keys of their arrays, by the names of tasks that have not ended."""
    tasks_left: Counter[str] = field(default_factory=Counter)
    """How many tasks of each array have not ended."""
    broken: set[str] = field(default_factory=set)
    """Arrays of which a task did not complete."""
    of_parent: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Names of the waiting children of each parent."""

    def expects(self, job: PastJob) -> None:
        """Count a task for its array, which ends with the last of them."""
        if job.array is not None:
            self.array_of[job.name] = job.array.key
            self.tasks_left[job.array.key] += 1

    def submitted(self, job: PastJob) -> Iterator[PastJob]:
        """Submit a job: yield it if it is eligible at once, and whoever becomes so because it never is."""
        if not job.after:
            yield job
            return
        self.waiting[job.name] = job
        for condition in job.after:
            self.of_parent[condition.job].append(job.name)
        yield from self._judged(job)

    def ended(self, name: str, end: ParentEnd) -> Iterator[PastJob]:
        """Note a job's final end; yield the children it makes eligible, directly or through others."""
        self.waiting.pop(name, None)
        if name in self.parents:
            self.ends[name] = end
            for child in self.of_parent.pop(name, ()):
                if child in self.waiting:
                    yield from self._judged(self.waiting[child])
        if (array := self.array_of.pop(name, None)) is not None:
            yield from self._task_ended(array, end)

    def _task_ended(self, array: str, end: ParentEnd) -> Iterator[PastJob]:
        self.tasks_left[array] -= 1
        if end is not ParentEnd.COMPLETED:
            self.broken.add(array)
        if not self.tasks_left[array]:
            yield from self.ended(array, ParentEnd.FAILED if array in self.broken else ParentEnd.COMPLETED)

    def _judged(self, job: PastJob) -> Iterator[PastJob]:
        verdicts = [condition_holds(self.ends, condition.kind, condition.job) for condition in job.after]
        if False in verdicts:
            yield from self.ended(job.name, ParentEnd.STOPPED)
        elif None not in verdicts:
            del self.waiting[job.name]
            yield job

    def fork(self) -> Self:
        """Copy them to go their own way."""
        of_parent = defaultdict(list, {parent: list(names) for parent, names in self.of_parent.items()})
        return replace(
            self,
            ends=dict(self.ends),
            waiting=dict(self.waiting),
            of_parent=of_parent,
            array_of=dict(self.array_of),
            tasks_left=Counter(self.tasks_left),
            broken=set(self.broken),
        )


def condition_holds(ends: Mapping[str, ParentEnd], kind: ConditionKind, parent: str) -> bool | None:
    """Tell whether a condition on a job holds; None while that job has not ended."""
    end = ends.get(parent)
    return None if end is None else end in holds_after(kind)
