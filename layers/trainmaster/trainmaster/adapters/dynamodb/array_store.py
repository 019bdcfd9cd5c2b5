"""Implement ArrayStore over DynamoDB: each call is one conditional transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import array_rows, layout, submissions
from trainmaster.adapters.dynamodb.array_layout import array_key
from trainmaster.adapters.dynamodb.array_reads import array_row
from trainmaster.adapters.dynamodb.calls import ConditionsFailedError
from trainmaster.adapters.dynamodb.dependency_rows import DependencyRows
from trainmaster.adapters.dynamodb.writes import Operation
from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import parse_task_name, position_of
from trainmaster.core.arrays.values import ArrayRequest
from trainmaster.core.errors import TaskNameError, TeamLimit, TeamLimitError
from trainmaster.core.jobs.model import Job
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.records import Admission


class ArrayRows(DependencyRows):
    """Writes arrays for passes and the API; see ``ArrayStore``."""

    def submit_array(self, array: Array, request: ArrayRequest, admission: Admission) -> None:
        def operations(of_known: str | None) -> list[Operation]:
            return [
                *array_rows.of_array_name(array, self._writes),
                *submissions.of_admission(array.template, admission, self._writes),
                *array_rows.of_new_array(array, request, self._writes, marks_team=admission.marks_team),
                *array_rows.not_a_task(array.name, self._writes, of_known=of_known),
            ]

        try:
            self._write_named(array.name, operations)
        except ConditionsFailedError as error:
            limit = self._limit_reached(array.template, error.positions, admission)
            if limit is None:
                raise
            raise TeamLimitError(limit) from error

    def _write_named(self, name: str, operations: Callable[[str | None], list[Operation]]) -> None:
        """Write a new job or array; the last operation checks that its name is no task's, if it could be.

        That check knows only the lowest and the highest index. Where it fails the array is read: its indices
        never change, so that it is still the same array is all that the second try has to check.

        Args:
            name: Of the job or array.
            operations: Makes them, given the entry id of an array that is known not to have the index.
        """
        wanted = operations(None)
        try:
            self._transactions.write(wanted)
        except ConditionsFailedError as error:
            task = parse_task_name(name)
            if task is None or error.positions != {len(wanted) - 1}:
                raise
            item = self._rows.get(array_key(task.array))
            array = None if item is None else array_row(item)
            if array is not None and position_of(array, task.index) is not None:
                raise TaskNameError(f"task {task.index} of array {task.array} has this name") from error
            self._transactions.write(operations(None if array is None else array.entry_id))

    def _limit_reached(
        self, job: Job, positions: frozenset[int], admission: Admission | None
    ) -> TeamLimit | None:
        """Return None if the name is in use, or the policy is being changed."""
        if admission is None or submissions.name_was_taken(positions):
            return None
        if submissions.team_refused(positions) and self._waiting(job) >= admission.limits.max_waiting:
            return TeamLimit.MAX_WAITING
        return TeamLimit.MAX_SUBMISSIONS_PER_MINUTE if submissions.minute_was_full(positions) else None

    def _waiting(self, job: Job) -> int:
        team = self._rows.get(layout.team_key(job.spec.pool, job.spec.team)) or {}
        return int(team.get(layout.WAITING, 0))

    def expand(
        self, array: Array, tasks: Sequence[tuple[Job, Mapping[str, Any]]], *, at: datetime
    ) -> frozenset[int]:
        operations, named = array_rows.of_expansion(array, tasks, self._writes, at=at)
        try:
            self._transactions.write(operations)
        except ConditionsFailedError as error:
            if not error.positions <= named.keys():  # the array has changed: the next plan sees how
                raise
            return frozenset(named[place] for place in error.positions)
        return frozenset()

    def commit_array(self, before: Array, after: Array, *, messages: Sequence[OutboxMessage] = ()) -> Array:
        self._transactions.write(array_rows.of_array_step(before, after, self._writes, messages=messages))
        return replace(after, ver=before.ver + 1)
