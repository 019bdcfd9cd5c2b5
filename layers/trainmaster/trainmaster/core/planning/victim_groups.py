"""Groups of victims: jobs of one tier and priority that hold the same instances.

A preemptor chooses among groups first, so that jobs are put in order only where that decides something.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import TypeAlias

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.planning.snapshot import Held, RunningJob

_Entry: TypeAlias = tuple[float, int, str, RunningJob]
"""Cost of its stop, its score negated, its name, and the job."""
Turn: TypeAlias = tuple[float, bool, int, str, RunningJob]
"""Sort key among equal tier and priority: cost for each useful instance, another warm key, then as above."""


@dataclass(slots=True, kw_only=True)
class Alike:
    """Jobs of one tier and priority that hold the same instances."""

    vector: Vector
    tier: int
    priority: int
    is_spared: bool = False
    """Whether they may be stopped only by a reclaim."""
    cost: Callable[[RunningJob], float]
    """Function that returns the cost of stopping one of the jobs."""
    jobs: list[RunningJob] = field(default_factory=list)
    """The jobs until a choice among them is needed, then empty: ``sorted`` has them."""
    sorted: list[_Entry] | None = None
    """The jobs, the cheapest to stop first; None until a choice among them is needed."""
    by_warm_key: dict[str, list[_Entry]] = field(default_factory=dict)
    teams: Counter[str] | None = None
    """Number of jobs by team; None until it is needed."""
    first: tuple[int, str] | None = None
    """Rank of the first of the jobs, or before it once that was removed; None until it is needed."""

    def count(self, *, but: str | None) -> int:
        """Count the jobs, without those of team ``but``."""
        if self.teams is None:
            self.teams = Counter(job.team for job in self._all())
        return self.teams.total() - (self.teams[but] if but is not None else 0)

    def is_behind(self, rank: tuple[int, str]) -> bool:
        """Tell whether all jobs of the group rank behind ``rank``."""
        if self.first is None:
            self.first = min((job.rank for job in self._all()), default=rank)
        return self.first > rank

    def _all(self) -> Iterable[RunningJob]:
        return self.jobs if self.sorted is None else (entry[-1] for entry in self.sorted)

    def entries(self) -> list[_Entry]:
        """Return the jobs, the cheapest to stop first."""
        if self.sorted is None:
            self.sorted = sorted((self.cost(job), -job.rank[0], job.name, job) for job in self.jobs)
            for entry in self.sorted:
                if entry[-1].warm_key is not None:
                    self.by_warm_key.setdefault(entry[-1].warm_key, []).append(entry)
            self.jobs = []
        return self.sorted

    def remove(self, job: RunningJob) -> None:
        entry = (self.cost(job), -job.rank[0], job.name, job)
        _drop(self.entries(), entry)
        if job.warm_key is not None:
            _drop(self.by_warm_key[job.warm_key], entry)
        if self.teams is not None:
            self.teams[job.team] -= 1


Group: TypeAlias = dict[tuple[Held, bool], Alike]
"""Jobs by what they hold, and by whether priorities spare them (``preemption.is_spared``)."""


def _drop(entries: list[_Entry], entry: _Entry) -> None:
    del entries[bisect_left(entries, entry[:3], key=lambda other: other[:3])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Jobs of one group that one preemptor may stop."""

    alike: Alike
    spared_team: str | None
    """The preemptor's team, if a reclaim alone may stop these jobs: a team reclaims from others only."""
    behind: tuple[int, str] | None
    """Rank that a victim must be behind; None if all jobs of the group are."""
    cost_of_wait: float
    """Cost of the wait for another instance, for each instance that is taken."""

    def count(self) -> int:
        if self.behind is None:
            return self.alike.count(but=self.spared_team)
        jobs = self.alike.jobs or [entry[-1] for entry in self.alike.entries()]
        return sum(map(self._may_stop, jobs))

    def turns(self, short: Vector, warm_key: str | None) -> Iterator[Turn]:
        """Yield the jobs in the order in which they would be stopped.

        Args:
            short: Instances that are lacking.
            warm_key: Warm key of the preemptor, which a victim of the same key leaves a warm pool for.
        """
        useful = sum(min(count, self.alike.vector.get(capacity, 0)) for capacity, count in short.items())
        entries = self.alike.entries()
        same = self.alike.by_warm_key.get(warm_key) if warm_key is not None else None
        if not same:
            return self._turns(entries, useful, is_other=True)
        others = (entry for entry in entries if entry[-1].warm_key != warm_key)
        return merge(self._turns(same, useful, is_other=False), self._turns(others, useful, is_other=True))

    def _turns(self, entries: Iterable[_Entry], useful: int, *, is_other: bool) -> Iterator[Turn]:
        for cost, score, name, job in entries:
            if self._may_stop(job):
                yield (cost / useful + self.cost_of_wait, is_other, score, name, job)

    def _may_stop(self, job: RunningJob) -> bool:
        return job.team != self.spared_team and (self.behind is None or job.rank > self.behind)
