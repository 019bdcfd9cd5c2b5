"""Whether a job would wait for itself, found by walking from its new parents to theirs.

Only a change of conditions can make a cycle: a job that is submitted has no children yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.end_conditions import Condition, Dependencies
from trainmaster.core.jobs.model import Job
from trainmaster.core.submission.array_conditions import RULE_DEPENDENCY

MOST_EDGES = 10_000
"""Conditions that one walk looks at."""


@dataclass(slots=True)
class Walk:
    """Goes up from a job, one generation of parents after the other."""

    job: Job
    edges: int = 0
    cycle: tuple[Condition, ...] = ()
    """Conditions from a new one of the job to the one that leads back to it; empty if none was found."""
    next_parents: list[str] = field(default_factory=list)
    """Names of the jobs whose conditions come next; empty: the walk is over."""
    _reached: dict[str, tuple[Condition, str | None]] = field(default_factory=dict)
    """Condition that led to each job, by entry id, and the job that has it (None where the walk began)."""

    @classmethod
    def up_from(cls, job: Job, after: Dependencies) -> "Walk":
        """Begin at a job with its new conditions."""
        walk = cls(job=job)
        walk._follow(None, after.conditions)
        return walk

    @property
    def is_too_long(self) -> bool:
        return self.edges > MOST_EDGES

    def go_on(self, jobs: Mapping[str, Job]) -> None:
        """Take the next generation, read under the names that ``next_parents`` has."""
        names, self.next_parents = self.next_parents, []
        for name in names:
            parent = jobs.get(name)
            if parent is None or parent.after is None or not parent.waits_for_others:
                continue
            if parent.spec.entry_id in self._reached:
                self._follow(parent.spec.entry_id, parent.after.open)

    def _follow(self, child: str | None, conditions: Iterable[Condition]) -> None:
        for condition in conditions:
            self.edges += 1
            if condition.entry_id == self.job.spec.entry_id:
                self.cycle = self.cycle or (*self._path_to(child), condition)
            elif condition.entry_id not in self._reached and condition.end is None:
                self._reached[condition.entry_id] = (condition, child)
                self.next_parents.append(condition.job)
        if self.cycle or self.is_too_long:
            self.next_parents = []

    def _path_to(self, entry_id: str | None) -> tuple[Condition, ...]:
        path: list[Condition] = []
        while entry_id is not None:
            condition, entry_id = self._reached[entry_id]
            path.append(condition)
        return tuple(reversed(path))

    def refusal(self, *, field: str) -> FieldError | None:
        """Return what is wrong with the new conditions; None: nothing."""
        team = self.job.spec.team
        if self.cycle:
            names = [self.job.name, *(condition.known_as(to=team) for condition in self.cycle)]
            waits = " waits for ".join(names)
            message, hint = f"would make a cycle: {waits}", "name a job that does not wait for this one"
        elif self.is_too_long:
            message = f"leads to more than {MOST_EDGES} conditions, which is as far as a cycle is looked for"
            hint = "name a job with fewer before it"
        else:
            return None
        return FieldError(field=field, message=message, hint=hint, rule=RULE_DEPENDENCY)
