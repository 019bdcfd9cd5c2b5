"""The queue as every view shows it: its rows in their order, a line a pool, words for an empty one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.jobs.array_views import array_view
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.start_estimates import StartEstimates, start_of
from trainmaster_client.views.pool_rows import PoolRow, pool_rows
from trainmaster_client.views.queue_rows import Row, array_row, job_row
from trainmaster_client.views.short_reasons import QueueFacts

EMPTY_QUEUE = "No jobs in the queue. Those that have ended: trainmaster history"
NO_MATCH = "No jobs."
MORE = "There is more: --all shows the whole queue."


@dataclass(frozen=True, kw_only=True)
class QueueAnswers:
    """Answers of the API about one instant."""

    document: Document = field(default_factory=dict)
    """Answer of ``GET /jobs``."""
    pools: Sequence[Mapping[str, Any]] = ()
    """Pools of ``GET /pools``; empty if they could not be had."""
    starts: StartEstimates | None = None
    """Likely starts; None if the stack estimates none."""
    is_filtered: bool = False
    """Whether only some jobs were asked for: then one that is not here may be in the queue."""

    @cached_property
    def jobs(self) -> tuple[JobView, ...]:
        """Parse the jobs. Raises MalformedViewError."""
        return tuple(job_view(job) for job in self.document.get("jobs") or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueModel:
    rows: tuple[Row, ...]
    """Jobs and arrays in the queue's order: running ones, then waiting ones, pool by pool."""
    pools: tuple[PoolRow, ...]
    """Those with jobs first; none if they are not known, or cannot be read."""
    has_starts: bool
    """Whether the stack estimates starts: else there is no column for them."""
    if_empty: str
    """Line in place of the rows where there are none."""
    further: str
    """Line below the rows if the queue has further pages, else empty."""


def queue_model(answers: QueueAnswers, *, now: datetime) -> QueueModel:
    """Put answers into words, as of an instant with a zone. Raises MalformedViewError."""
    try:
        arrays = [array_row(array_view(array), now=now) for array in answers.document.get("arrays") or ()]
    except ValueError as error:  # an instant that is none
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    folded = {array.name for array in arrays if array.name}
    rows = job_rows(answers.jobs, now=now, pools=answers.pools, starts=answers.starts or {})
    jobs = [row for row in rows if not (row.job and row.job.is_waiting and row.job.array in folded)]
    return QueueModel(
        rows=tuple(_merged(jobs, arrays)),
        pools=_pools(answers, now),
        has_starts=answers.starts is not None,
        if_empty=NO_MATCH if answers.is_filtered else EMPTY_QUEUE,
        further=MORE if answers.document.get("next_token") else "",
    )


def _pools(answers: QueueAnswers, now: datetime) -> tuple[PoolRow, ...]:
    try:
        return pool_rows(answers.pools, answers.jobs, now=now)
    except MalformedViewError:  # a queue is shown without its pools, too
        return ()


def job_rows(
    jobs: Sequence[JobView],
    *,
    now: datetime,
    pools: Sequence[Mapping[str, Any]] = (),
    starts: StartEstimates = MappingProxyType({}),
) -> list[Row]:
    """Put jobs of one list into words; what is ahead of a job, or free, is known as far as these show it."""
    facts = QueueFacts.of(jobs, pools)
    return [job_row(job, facts, now=now, start=start_of(job, starts)) for job in jobs]


def _merged(jobs: Sequence[Row], arrays: Sequence[Row]) -> list[Row]:
    """Put each array where its first waiting task is: in its pool, before the waiting jobs behind it."""
    rows = list(jobs)
    for array in arrays:
        in_pool = [number for number, row in enumerate(rows) if row.cells["pool"] == array.cells["pool"]]
        behind = (number for number in in_pool if _is_behind(rows[number], array))
        rows.insert(next(behind, in_pool[-1] + 1 if in_pool else len(rows)), array)
    return rows


def _is_behind(row: Row, array: Row) -> bool:
    position, own = row.cells["position"], array.cells["position"]
    if row.job is not None and (not row.job.is_waiting or row.job.position is None):
        return row.job.is_waiting  # a job without a position waits for no turn: those come last
    return position.isdecimal() and own.isdecimal() and int(position) > int(own)
