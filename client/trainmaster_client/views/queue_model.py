"""The queue as every view shows it: its rows in their order, a line a pool, words for an empty one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.start_estimates import StartEstimates, start_of
from trainmaster_client.views.pool_summaries import PoolSummary, pool_summaries
from trainmaster_client.views.queue_rows import Row, array_row, job_row
from trainmaster_client.views.short_reasons import Surroundings

EMPTY_QUEUE = "No jobs in the queue. Those that have ended: trainmaster history"
NO_MATCH = "No jobs."
MORE = "There is more: --all shows the whole queue."


@dataclass(frozen=True, kw_only=True)
class QueueAnswers:
    """What the API answered at one look."""

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
    pools: tuple[PoolSummary, ...]
    """Those with jobs first."""
    has_starts: bool
    """Whether the stack estimates starts: else there is no column for them."""
    if_empty: str
    """Line that stands where the rows would be."""
    more: str
    """Line below the rows if the queue has further pages, else empty."""


def queue_model(answers: QueueAnswers, *, now: datetime) -> QueueModel:
    """Put answers into words, as of an instant with a zone. Raises MalformedViewError."""
    around, starts = Surroundings.of(answers.jobs, answers.pools), answers.starts or {}
    try:
        arrays = [array_row(array, now=now) for array in answers.document.get("arrays") or ()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    folded = {array.name for array in arrays if array.name}
    jobs = [
        job_row(job, around, now=now, start=start_of(job, starts))
        for job in answers.jobs
        if not (job.is_waiting and job.array in folded)
    ]
    return QueueModel(
        rows=tuple(_merged(jobs, arrays)),
        pools=pool_summaries(answers.pools, answers.jobs, now=now),
        has_starts=answers.starts is not None,
        if_empty=NO_MATCH if answers.is_filtered else EMPTY_QUEUE,
        more=MORE if answers.document.get("next_token") else "",
    )


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
