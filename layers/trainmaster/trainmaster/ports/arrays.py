"""Port for reading and writing arrays."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.values import ArrayRequest
from trainmaster.core.jobs.model import Job
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.records import Admission


class ArrayReader(Protocol):
    """Strongly consistent reads."""

    def array(self, name: str) -> Array | None: ...

    def arrays(self, names: Iterable[str]) -> dict[str, Array]:
        """Read arrays by name; those that are gone or cannot be understood are left out."""

    def array_request(self, name: str) -> ArrayRequest:
        """Return request and values. Raises RowSetAsideError if they are gone or broken."""

    def open_arrays(self, pool: str | None, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        """Return (mark, name) of arrays that have not ended, of one pool or of all, by pool and name.

        They begin behind the mark ``after``; "": with the first.
        """

    def ended_arrays(self, team: str, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        """Return (mark, name) of a team's ended arrays, the newest first, from behind a mark; "": all."""


class ArrayStore(Protocol):
    """Writes arrays; each call is one transaction."""

    def submit_array(self, array: Array, request: ArrayRequest, admission: Admission) -> None:
        """Store a new array.

        Raises:
            LostRaceError: The name is in use, a parent has ended, or the policy is being changed.
            TaskNameError: A task of another array has the name.
            TeamLimitError: The team has reached one of its limits in the pool.
        """

    def expand(
        self, array: Array, tasks: Sequence[tuple[Job, Mapping[str, Any]]], *, at: datetime
    ) -> frozenset[int]:
        """Store tasks as jobs with their requests, if the array is as it was read.

        Returns:
            Positions of tasks whose names are in use; then nothing was written. Empty: all are stored.

        Raises:
            LostRaceError: The array has changed.
        """

    def commit_array(self, before: Array, after: Array, *, messages: Sequence[OutboxMessage] = ()) -> Array:
        """Write an array as a step has changed it, with messages; return it with its new version.

        Counts of jobs and sums are not written: the changes of the tasks keep them. Raises LostRaceError.
        """
