"""The jobs of a replay that wait for the ends of others.

A child is submitted to its pool at the instant at which its last condition holds. If one can hold no more, it
ends without a start, and so may those that wait for it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from trainmaster.core.jobs.end_conditions import ConditionKind, ParentEnd, holds_after

from trainmaster_client.simulate.engine.past_jobs import PastJob


@dataclass(slots=True, kw_only=True)
class Children:
    """Children whose conditions are open, and the ends of their parents so far."""

    parents: frozenset[str] = frozenset()
    """Names of all jobs that others have a condition on."""
    ends: dict[str, ParentEnd] = field(default_factory=dict)
    """Ends of parents, by name."""
    waiting: dict[str, PastJob] = field(default_factory=dict)
    """Children that were submitted and are not eligible yet, by name."""
    of_parent: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Names of the waiting children of each parent."""

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
        if name not in self.parents:
            return
        self.ends[name] = end
        for child in self.of_parent.pop(name, ()):
            if child in self.waiting:
                yield from self._judged(self.waiting[child])

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
        return replace(self, ends=dict(self.ends), waiting=dict(self.waiting), of_parent=of_parent)


def condition_holds(ends: Mapping[str, ParentEnd], kind: ConditionKind, parent: str) -> bool | None:
    """Tell whether a condition on a job holds; None while that job has not ended."""
    end = ends.get(parent)
    return None if end is None else end in holds_after(kind)
