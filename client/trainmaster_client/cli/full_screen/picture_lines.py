"""The pages as lines: the same tables, summaries and charts as the commands print."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from trainmaster_client.cli.full_screen.line_list import Line
from trainmaster_client.cli.pools import pool_lines
from trainmaster_client.cli.queue_columns import QueueRow, fitted_grid, whole_grid
from trainmaster_client.cli.queue_table import queue_lines
from trainmaster_client.cli.queue_view import QueueView
from trainmaster_client.cli.timeline_chart import Window, chart_lines
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.timelines import Timeline

MOST_SUMMARIES = 4
"""Lines of pools above the queue: the rest is on a page of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    summary: Text
    """Pools, what is filtered, the headings."""
    lines: Sequence[Line]


def queue_page(view: QueueView, wanted: str, *, now: datetime, width: int) -> QueuePage:
    """Return the page with the rows that contain ``wanted`` anywhere, in any case."""
    rows = [row for row in view.rows(now=now) if wanted.casefold() in _searched(row)]
    grid = fitted_grid(rows, width) or whole_grid(rows, has_starts=False)
    head, *lines = queue_lines(grid)
    pools = [line for line in view.heading_lines(now=now, width=width) if line.plain]
    left = len(pools) - MOST_SUMMARIES
    above = [*pools[:MOST_SUMMARIES], *([Text(f"... {left} more: 2 shows all pools")] if left > 0 else [])]
    if wanted:
        shown = f"{len(rows)} of {len(view.jobs)} jobs have {wanted!r}; esc shows all"
        above.append(Text(shown, style="yellow", no_wrap=True))
    above.append(head if rows else Text("No jobs." if wanted else view.empty_line))
    keyed = [Line(text=line, key=row.job.name or "") for line, row in zip(lines, rows, strict=True)]
    return QueuePage(summary=Text("\n").join(above), lines=keyed)


def _searched(row: QueueRow) -> str:
    job = row.job
    return "\n".join([job.name or "", job.team, job.pool, job.state, job.instances, job.why]).casefold()


def pool_page(view: QueueView, *, now: datetime) -> list[Line]:
    lines = list(pool_lines(view.pools, now=now)) or ["No pools: an admin has to apply a policy."]
    return [Line(text=Text(line, no_wrap=True)) for line in lines]


def timeline_page(seen: Timeline, window: Window) -> list[Line]:
    return [Line(text=Text(line, no_wrap=True)) for line in chart_lines(seen, window)]


def detail(job: JobView | None) -> Text:
    """Say what the job's row has no room for."""
    if job is None:
        return Text("")
    name = job.name or "(other team's)"
    facts = [f"{name}: {job.state}", job.instances, f"priority {job.priority}", job.why]
    return Text(", ".join(fact for fact in facts if fact))
