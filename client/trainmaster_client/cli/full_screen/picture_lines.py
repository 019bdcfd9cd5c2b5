"""The pages as lines: the same tables, summaries and charts as the commands print."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from trainmaster_client.cli.full_screen.line_list import Line
from trainmaster_client.cli.pools import pool_lines
from trainmaster_client.cli.queue_table import pool_lines as summary_lines
from trainmaster_client.cli.queue_table import queue_lines
from trainmaster_client.cli.timeline_chart import Window, chart_lines
from trainmaster_client.jobs.timelines import Timeline
from trainmaster_client.views.fitted_tables import fitted_grid, whole_grid
from trainmaster_client.views.queue_model import NO_MATCH, QueueAnswers, QueueModel
from trainmaster_client.views.queue_rows import Row

MOST_SUMMARIES = 4
"""Lines of pools above the queue: the rest is on a page of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    summary: Text
    """Pools, what is filtered, the headings."""
    lines: Sequence[Line]


def queue_page(model: QueueModel, wanted: str, *, width: int) -> QueuePage:
    """Return the page with the rows that contain ``wanted`` anywhere, in any case."""
    rows = [row for row in model.rows if wanted.casefold() in row.searched]
    grid = fitted_grid(rows, width) or whole_grid(rows, has_starts=False)
    head, *lines = queue_lines(grid, rows)
    above = summary_lines(model, width, most=MOST_SUMMARIES)
    if wanted:
        shown = f"{len(rows)} of {len(model.rows)} jobs have {wanted!r}; esc shows all"
        above.append(Text(shown, style="yellow", no_wrap=True))
    above.append(head if rows else Text(NO_MATCH if wanted else model.if_empty))
    keyed = [Line(text=line, key=row.name) for line, row in zip(lines, rows, strict=True)]
    return QueuePage(summary=Text("\n").join(above), lines=keyed)


def pool_page(answers: QueueAnswers, *, now: datetime) -> list[Line]:
    lines = list(pool_lines(answers.pools, now=now)) or ["No pools: an admin has to apply a policy."]
    return [Line(text=Text(line, no_wrap=True)) for line in lines]


def timeline_page(seen: Timeline, window: Window) -> list[Line]:
    return [Line(text=Text(line, no_wrap=True)) for line in chart_lines(seen, window)]


def detail(row: Row | None) -> Text:
    """Say what the job's row has no room for."""
    if row is None:
        return Text("")
    cells = row.cells
    facts = [
        f"{row.name}: {cells['state']}",
        cells["instances"],
        f"priority {cells['priority']}",
        cells["reason"],
    ]
    return Text(", ".join(fact for fact in facts if fact))
