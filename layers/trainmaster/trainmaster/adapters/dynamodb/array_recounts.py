"""Count the tasks of open arrays again, by their jobs, and correct the rows of the arrays."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_layout import array_key, open_array_key
from trainmaster.adapters.dynamodb.array_reads import array_row
from trainmaster.adapters.dynamodb.array_rows import of_recounted_array
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import (
    MAX_ITEMS,
    ConditionsFailedError,
    SortKeys,
    Transactions,
    key_attributes,
)
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item
from trainmaster.adapters.dynamodb.pool_reads import job_row
from trainmaster.adapters.dynamodb.retention import Retention
from trainmaster.adapters.dynamodb.writes import Operation, Writes
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.task_recounts import TaskRecount, counts_as_text, existing_names, recount_tasks
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import Job
from trainmaster.core.row_differences import Difference, differences

BATCH = 100
"""Jobs of one batch. Source: DynamoDB limits, BatchGetItem."""
TRIES = 3
"""Reads of what keeps changing before it is left to the next slice."""


class ArrayRecounts(GuardedReads):
    def __init__(self, client: Any, *, table: str) -> None:
        super().__init__(client, table=table)
        self._table = table
        self._transactions = Transactions(client)
        self._writes = Writes(table=table, retention=Retention(days=0))  # of rows that do not expire

    def _open_arrays(self, pool: str) -> list[Item]:
        partition, prefix = open_array_key(pool, "")
        return list(self._rows.query(partition, SortKeys.beginning(prefix)))

    def _recount_arrays(self, pool: str, *, apply: bool) -> Iterator[Difference]:
        """Compare the open arrays of a pool with the jobs of their tasks; with ``apply`` correct the rows.

        Raises LostRaceError where the tasks of one kept changing.
        """
        for row in self._open_arrays(pool):
            yield from self._recount_array(row["sk"].partition("#")[2], apply=apply)

    def _recount_array(self, name: str, *, apply: bool) -> tuple[Difference, ...]:
        for _ in range(TRIES):
            item = self._rows.get(array_key(name))
            array = next(self._understood([] if item is None else [item], array_row), None)
            jobs, broken = ({}, set[str]()) if array is None else self._jobs(existing_names(array))
            if array is None or broken:
                return ()  # nothing is known of what cannot be read; the report names it
            counted = recount_tasks(array, jobs)
            different = tuple(differences(*_compared(array, counted)))
            has_moved = self._rows.get(array_key(name)) != item
            if not has_moved and (not apply or not different or self._correct(array, counted)):
                return different
        raise LostRaceError(f"array {name} kept changing")

    def _correct(self, array: Array, counted: TaskRecount) -> bool:
        """Name the array in the jobs that forgot it, and write its counts with the last of them.

        A death in between leaves counts that the next recount corrects. False: something has changed.
        """
        writes = [*map(self._link, counted.linked), of_recounted_array(array, counted.after, self._writes)]
        try:
            for start in range(0, len(writes), MAX_ITEMS):
                self._transactions.write(writes[start : start + MAX_ITEMS])
        except ConditionsFailedError:
            return False
        return True

    def _link(self, job: Job) -> Operation:
        """Write of what array a job is a task, if the job is as it was read."""
        values = {":array": encode(job)["spec"]["array"], ":ver": job.ver, ":next": job.ver + 1}
        return {
            "Update": {
                "TableName": self._table,
                "Key": key_attributes(layout.job_key(job.name)),
                "UpdateExpression": "SET #spec.#array = :array, #ver = :next",
                "ConditionExpression": "#ver = :ver",
                "ExpressionAttributeNames": {"#spec": "spec", "#array": "array", "#ver": "ver"},
                "ExpressionAttributeValues": to_attributes(values),
            }
        }

    def _jobs(self, names: Iterable[str]) -> tuple[dict[str, Job], set[str]]:
        """Return the jobs that can be read, and the names of those that cannot."""
        wanted = list(dict.fromkeys(names))
        jobs: dict[str, Job] = {}
        broken: set[str] = set()
        for start in range(0, len(wanted), BATCH):
            for row in self._rows.jobs(wanted[start : start + BATCH]):
                try:
                    job = job_row(row)
                except Exception:  # noqa: BLE001  reported by the read of the table
                    broken.add(row["pk"].removeprefix("J#"))
                else:
                    jobs[job.name] = job
        return jobs, broken


def _compared(
    array: Array, counted: TaskRecount
) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[str, Any]]]:
    """Return expected and stored fields of the array's row, and of jobs that lack the array's name."""
    row = _text_of(array_key(array.name))
    expected: dict[str, Mapping[str, Any]] = {row: dict(counts_as_text(counted.after))}
    stored: dict[str, Mapping[str, Any]] = {row: dict(counts_as_text(array))}
    for job in counted.linked:
        key = _text_of(layout.job_key(job.name))
        expected[key], stored[key] = {"spec.array": array.name}, {}
    return expected, stored


def _text_of(key: layout.Key) -> str:
    return "/".join(key)
