"""Victims by the team that they are stopped for.

A job that runs on instances reserved for its team gives them back to the team: its stop helps no other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.planning.victims import Victims

_ANY_OTHER = ""
"""Stands for all teams that have nothing reserved."""


@dataclass(kw_only=True)
class TeamVictims:
    running: tuple[RunningJob, ...]
    on_reserved: Mapping[str, str]
    """Teams of the jobs that run on what is reserved for them, by job."""
    make: Callable[[tuple[RunningJob, ...]], Victims]
    """Sorts the jobs that may be stopped."""
    _by_team: dict[str, Victims] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def of(self, team: str) -> Victims:
        """Return the jobs that may be stopped for jobs of a team."""
        key = team if team in self.on_reserved.values() else _ANY_OTHER
        if key not in self._by_team:
            running = self.running
            if self.on_reserved or self._taken:
                running = tuple(job for job in running if self._is_among(job, key))
            self._by_team[key] = self.make(running)
        return self._by_team[key]

    def take(self, victims: Iterable[RunningJob]) -> None:
        """Remove jobs that are being stopped, so that they are not counted on any more."""
        stopped = tuple(victims)
        for key, kept in self._by_team.items():
            kept.take(job for job in stopped if self._is_among(job, key))
        self._taken |= {job.name for job in stopped}

    def _is_among(self, job: RunningJob, key: str) -> bool:
        return job.name not in self._taken and self.on_reserved.get(job.name, key) == key
