"""Port for reading and writing the conditions of jobs that wait for others."""

from datetime import datetime
from typing import Protocol

from trainmaster.core.jobs.end_conditions import Dependent
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage


class DependencyReader(Protocol):
    """Strongly consistent reads."""

    def dependents(self, parent_entry_id: str, *, after: str, limit: int) -> tuple[Dependent, ...]:
        """Jobs with a condition on this submission, by name, from behind ``after``; "": from the first on."""

    def dependents_count(self, parent_entry_id: str) -> int: ...

    def graph_version(self) -> int:
        """Rises with each change of conditions after a submission; 0 before the first."""


class DependencyStore(Protocol):
    def commit_conditions(self, change: Change, *, graph_version: int, at: datetime) -> Job:
        """Write a job with other conditions, and put it among the dependents of their parents.

        Raises LostRaceError where the job changed, an open parent has ended, or the conditions of any job
        changed since ``graph_version`` was read.
        """

    def leave_for_root(self, pool: str, message: OutboxMessage, *, root_entry_id: str, team: str) -> bool:
        """Leave a message; False, and nothing left, where one was left for this root and team before."""

    def note_released(self, pool: str, message: OutboxMessage, *, upto: str) -> None:
        """Keep how far the children of a message have been released, and let any pass continue with it."""
