"""Read the table, strongly consistent except for the index of finished jobs."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import PAGE, SortKeys
from trainmaster.adapters.dynamodb.codec import (
    account_of,
    decode,
    is_behind,
    iso,
    run_times_of,
    spot_day,
    ties_by_name,
    usage_line,
)
from trainmaster.adapters.dynamodb.dependency_rows import DependencyReads
from trainmaster.adapters.dynamodb.guard import Item
from trainmaster.adapters.dynamodb.history_reads import HistoryReads
from trainmaster.adapters.dynamodb.pool_reads import PoolReads, job_row
from trainmaster.adapters.dynamodb.pool_rows import running_row, waiting_row
from trainmaster.adapters.dynamodb.warm_histories import warm_history, warm_history_partition
from trainmaster.core.costs.ledger import MonthAccount, PreemptionEntry, UsageLine, month_of
from trainmaster.core.costs.spot_record import SpotDay
from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.planning.candidates import short_lane
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.records import Alias, HistoryLine, SetAside
from trainmaster.core.rules.violation import ViolationRecord

T = TypeVar("T")
HISTORY_LINES = 200
MOST_RUN_TIMES = 250
"""Run times of a pool that one call reads, of all teams together."""
MOST_WARM_KEYS = 500
"""Records of warm keys that one call reads, in no particular order: 700 bytes each."""
_NOT_NOTED = "~"
"""Sorts behind every instant: a row without the time of its last change may have changed since."""
BATCH = 100
"""Keys of one BatchGetItem. Source: DynamoDB limits."""


class DynamoReader(PoolReads, HistoryReads, DependencyReads):
    """Implements JobReader, SnapshotReader, QueueReader, PoolReader and HistoryReader over one table.

    Of several rows those that cannot be understood are left out and reported; a single one that was asked
    for raises RowSetAsideError.
    """

    # ---- single jobs

    def job(self, name: str) -> Job | None:
        return self._single(layout.job_key(name), job_row, subject=name)

    def alias(self, training_job_name: str) -> Alias | None:
        return self._single(layout.alias_key(training_job_name), alias_row, subject=training_job_name)

    def request(self, name: str) -> dict[str, Any]:
        """Return the job's request. Raises RowSetAsideError also if there is none, as every job has one."""
        key = layout.request_key(name)
        body = self._single(key, request_body, subject=name)
        if body is None:
            self._report(SetAside(key="/".join(key), error="the job has no request"))
            raise RowSetAsideError("/".join(key), subject=name)
        return body

    def _single(self, key: layout.Key, make: Callable[[Item], T], *, subject: str) -> T | None:
        item = self._rows.get(key)
        if item is None:
            return None
        for made in self._understood([item], make):
            return made
        raise RowSetAsideError("/".join(key), subject=subject)

    def story(self, job: Job) -> tuple[tuple[Attempt, ...], tuple[HistoryLine, ...]]:
        partition = layout.job_key(job.name)[0]
        lines = self._rows.query(partition, SortKeys.beginning(f"h#{job.spec.entry_id}#"), backwards=True)
        history = list(self._understood(islice(lines, HISTORY_LINES), history_row))
        return self.attempts(job.name, job.spec.entry_id), tuple(reversed(history))

    # ---- money

    def month(self, team: str, month: str) -> MonthAccount:
        return account_of(self._rows.get(layout.month_key(team, month)) or {})

    def usage(self, team: str, month: str) -> tuple[tuple[UsageLine, ...], tuple[PreemptionEntry, ...]]:
        partition = layout.month_key(team, month)[0]
        lines = self._understood(self._rows.query(partition, SortKeys.beginning("j#")), usage_line)
        takings = self._understood(self._rows.query(partition, SortKeys.beginning("p#")), taking_row)
        return tuple(lines), tuple(takings)

    # ---- what bypassed the queue

    def violation(self, training_job_name: str, *, at: datetime) -> ViolationRecord | None:
        key = layout.violation_key(month_of(at), iso(at), training_job_name)
        return self._single(key, violation_row, subject=training_job_name)

    def violations(
        self, month: str, *, after: tuple[str, str] | None, limit: int
    ) -> tuple[ViolationRecord, ...]:
        partition = layout.violation_key(month, "", "")[0]
        behind = None if after is None else SortKeys.behind(layout.violation_key(month, *after)[1])
        items = self._rows.query(partition, behind, page=min(limit, PAGE))
        return tuple(islice(self._understood(items, violation_row), limit))

    def spot_days(self, instance_type: str) -> tuple[SpotDay, ...]:
        partition, prefix = layout.spot_days_prefix(instance_type)
        return tuple(self._understood(self._rows.query(partition, SortKeys.beginning(prefix)), spot_day))

    # ---- run times

    def run_times(self, pool: str, lanes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], RunTimes]:
        first, are_more = self._rows.first(layout.run_times_partition(pool), most=MOST_RUN_TIMES)
        wanted = [layout.run_times_key(pool, team, short_lane(text)) for team, text in lanes if are_more]
        read = {(row["pk"], row["sk"]) for row in first}
        others = self._batches([key for key in dict.fromkeys(wanted) if key not in read])
        rows = self._understood(
            chain(first, others), lambda item: (item["sk"].partition("#"), run_times_of(item))
        )
        return {(team, lane): times for (team, _, lane), times in rows}

    # ---- lists for people

    def parked(self, pool: str, *, after: tuple[int, str] | None, limit: int) -> tuple[WaitingJob, ...]:
        behind = None if after is None else SortKeys.behind(f"{after[0]:015d}#{after[1]}")
        items = self._rows.query(layout.parked_partition(pool), behind, page=min(limit, PAGE))
        return tuple(islice(self._understood(items, waiting_row), limit))

    def running(self, pool: str) -> tuple[RunningJob, ...]:
        entries = self._understood(self._rows.query(layout.running_partition(pool)), running_row)
        return tuple(sorted(entries, key=lambda job: (-job.priority, job.claimed_at, job.name)))

    def finished(
        self, team: str, *, state: JobState, after: tuple[str, str] | None, limit: int
    ) -> tuple[tuple[str, str], ...]:
        condition = "team = :team" if after is None else "team = :team AND ended_at <= :upto"
        values: dict[str, Any] = {":team": team, ":state": state.value}
        if after is not None:
            values[":upto"] = after[0]
        pages = self._rows.pages(
            first=limit + 1,  # and one, to see that a tie is over
            IndexName=layout.BY_TEAM,
            KeyConditionExpression=condition,
            FilterExpression="#state = :state",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues=to_attributes(values),
            ScanIndexForward=False,
        )
        ends = ((row["ended_at"], row["pk"].removeprefix("J#")) for row in pages)
        ordered = (end for end in ties_by_name(ends) if after is None or is_behind(end, after))
        return tuple(islice(ordered, limit))

    def jobs(self, names: Iterable[str]) -> dict[str, Job]:
        rows = self._batches([layout.job_key(name) for name in dict.fromkeys(names)])
        return {job.name: job for job in self._understood(rows, job_row)}

    def changed_since(self, names: Iterable[str], since: datetime) -> dict[str, Job]:
        rows = self._batches([layout.job_key(name) for name in dict.fromkeys(names)])
        late = (row for row in rows if row.get(layout.CHANGED_AT, _NOT_NOTED) >= iso(since))
        return {job.name: job for job in self._understood(late, job_row)}

    def to_start(self, names: Iterable[str]) -> dict[str, tuple[Job, dict[str, Any]]]:
        wanted = list(dict.fromkeys(names))
        keys = [key(name) for name in wanted for key in (layout.job_key, layout.request_key)]
        rows = {(row["pk"], row["sk"]): row for row in self._batches(keys)}
        ready: dict[str, tuple[Job, dict[str, Any]]] = {}
        for name in wanted:
            item, request = rows.get(layout.job_key(name)), rows.get(layout.request_key(name))
            jobs = self._understood([item] if item else [], job_row)
            bodies = self._understood([request] if request else [], request_body)
            for job, body in zip(jobs, bodies, strict=False):
                ready[name] = (job, body)
        return ready

    def warm_histories(self, pool: str) -> dict[str, WarmHistory]:
        rows = self._rows.query(warm_history_partition(pool), page=min(MOST_WARM_KEYS, PAGE))
        return dict(self._understood(islice(rows, MOST_WARM_KEYS), warm_history))

    def _batches(self, keys: Sequence[layout.Key]) -> Iterator[Item]:
        for start in range(0, len(keys), BATCH):
            yield from self._rows.several(keys[start : start + BATCH])


def alias_row(item: Item) -> Alias:
    return decode(Alias, item)


def history_row(item: Item) -> HistoryLine:
    return decode(HistoryLine, item)


def taking_row(item: Item) -> PreemptionEntry:
    return decode(PreemptionEntry, item)


def violation_row(item: Item) -> ViolationRecord:
    return decode(ViolationRecord, item)


def request_body(item: Item) -> dict[str, Any]:
    body = json.loads(gzip.decompress(bytes(item["body"])))
    if not isinstance(body, dict):
        raise TypeError("a request is a mapping")
    return body
