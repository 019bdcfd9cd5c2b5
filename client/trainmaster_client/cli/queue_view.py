"""Holds one reading of the queue: jobs and, if the stack gives them, pools and likely starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from rich.text import Text

from trainmaster_client.api import Document
from trainmaster_client.cli.pool_summaries import summary_lines
from trainmaster_client.cli.queue_columns import QueueRow
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.start_estimates import StartEstimates, start_of

EMPTY_QUEUE = "No jobs in the queue. Those that have ended: trainmaster history"
NO_MATCH = "No jobs."


@dataclass(frozen=True, kw_only=True)
class QueueView:
    document: Document = field(default_factory=dict)
    """Answer of ``GET /jobs``."""
    pools: Sequence[Mapping[str, Any]] = ()
    """Pools of ``GET /pools``; empty if they could not be had."""
    starts: StartEstimates | None = None
    """Likely starts; None if the stack estimates none."""
    is_whole: bool = True
    """Whether nothing was filtered: then a job that is not here is not in the queue."""

    @cached_property
    def jobs(self) -> list[JobView]:
        return [job_view(job) for job in self.document.get("jobs") or ()]

    @property
    def has_more(self) -> bool:
        return bool(self.document.get("next_token"))

    @property
    def empty_line(self) -> str:
        return EMPTY_QUEUE if self.is_whole else NO_MATCH

    def rows(self, *, now: datetime) -> list[QueueRow]:
        starts = self.starts or {}
        return [QueueRow(job=job, now=now, start=start_of(job, starts)) for job in self.jobs]

    def heading_lines(self, *, now: datetime, width: int) -> list[Text]:
        """Return a line a pool and an empty one; none if the pools are not known."""
        try:
            lines = summary_lines(self.pools, self.jobs, now=now, width=width)
        except (KeyError, TypeError, ValueError, AttributeError):
            return []
        return [Text(line, no_wrap=True, overflow="crop") for line in [*lines, *([""] if lines else [])]]
