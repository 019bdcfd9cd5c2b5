"""Draws the queue's model on a screen: a line a job, or on a narrow screen two; and as CSV."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trainmaster_client.cli.csv_output import Cell, print_csv
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS
from trainmaster_client.jobs.instants import api_time
from trainmaster_client.views.fitted_tables import Grid, fitted_grid, whole_grid
from trainmaster_client.views.queue_model import QueueModel
from trainmaster_client.views.queue_rows import STATE_MARKS, UNKNOWN_MARK, Row
from trainmaster_client.views.short_names import shortened

REASON_COLUMNS = 20
"""A reason folded into less is not readable."""
MOST_POOLS = 8
"""Lines above the queue; more are counted."""
_STYLES = {"good": "green", "bad": "red", "warn": "yellow"}
CSV_HEADINGS = (
    *("job", "team", "pool", "state", "reason_code", "reason", "instances", "priority", "position"),
    *("attempt", "submitted_at", "started_at", "training_since", "ends_by", "ran_seconds", "left_seconds"),
    *("starts_p50", "starts_p90"),
)
"""New ones come at the end."""


def state_style(state: str) -> str:
    return _STYLES.get(STATE_MARKS.get(state, UNKNOWN_MARK).tone, "")


def summary_lines(model: QueueModel, width: int, *, most: int = MOST_POOLS) -> list[Text]:
    """Return a line a pool; none if the pools are not known."""
    lines = [summary.line(width) for summary in model.pools[:most]]
    if unshown := len(model.pools) - len(lines):
        lines.append(f"... {unshown} more pools: trainmaster pools")
    return [Text(line, no_wrap=True, overflow="crop") for line in lines]


def queue_picture(model: QueueModel, *, to: Console, lines: int | None = None) -> RenderableType:
    """Draw the rows to fit the screen; with ``lines`` also on that many lines: then the rest is counted."""
    rows = model.rows if lines is None else model.rows[:lines]  # a job takes a line at least
    if not rows:
        return Text(model.if_empty)
    unseen = len(model.rows) - len(rows)
    is_whole = to.width >= UNLIMITED_COLUMNS
    grid = whole_grid(rows, has_starts=model.has_starts) if is_whole else fitted_grid(rows, to.width)
    if grid is not None:
        return _cut([Group(line) for line in queue_lines(grid, rows)], lines, to, uncounted=(1, unseen))
    names = shortened([row.cells["job"] for row in rows], to.width)
    narrow = [_narrow(row, names[row.cells["job"]]) for row in rows]
    return _cut(narrow, lines, to, uncounted=(0, unseen))


def queue_lines(grid: Grid, rows: Sequence[Row]) -> list[Text]:
    """Return the headings, then a line a row."""
    head = _line(grid, tuple(column.heading for column in grid.columns), "")
    head.stylize("bold")
    styles = (_STYLES.get(row.mark.tone, "") for row in rows)
    return [head, *(_line(grid, cells, style) for cells, style in zip(grid.lines, styles, strict=True))]


def print_queue_csv(model: QueueModel) -> None:
    """Print a row a job: instants in UTC, spans in seconds."""
    print_csv(CSV_HEADINGS, map(_csv_cells, model.rows))


def _line(grid: Grid, cells: Sequence[str], state: str) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for number, (column, cell, width) in enumerate(zip(grid.columns, cells, grid.widths, strict=True)):
        is_last = number == len(cells) - 1
        blank = " " * (width - cell_len(cell))
        text = f"{blank}{cell}" if column.is_number else f"{cell}{'' if is_last else blank}"
        line.append(text, style=state if column.key == "state" else "")
        line.append("" if is_last else " " * grid.gap)
    return line


def _narrow(row: Row, name: str) -> RenderableType:
    return Group(Text(name, style="bold"), Padding(Text(", ".join(row.details)), (0, 0, 0, 4), expand=False))


def _cut(
    blocks: Sequence[RenderableType], lines: int | None, to: Console, *, uncounted: tuple[int, int]
) -> RenderableType:
    """Cut blocks to the screen's lines; at least one job is shown, however low the screen.

    ``uncounted``: how many blocks are no jobs, and how many jobs are no blocks.
    """
    heads, rest = uncounted
    heights = [len(to.render_lines(block, pad=False)) for block in blocks] if lines is not None else []
    if lines is None or (sum(heights) <= lines and not rest):
        return Group(*blocks)
    shown = max(sum(end < lines for end in accumulate(heights)), heads + 1)  # the count needs a line, too
    hidden = len(blocks) - shown + rest
    return Group(*blocks[:shown], *([Text(f"... {hidden} more")] if hidden else []))


def _csv_cells(row: Row) -> tuple[Cell, ...]:
    job, start = row.job, row.start
    if job is None:  # an array: CSV has its tasks instead
        return ()
    why = job.waiting or job.reason
    return (
        *(job.name, job.team, job.pool, job.state),
        *((why.code, why.message) if why else (None, None)),
        *(job.instances, job.priority, job.position, job.attempt),
        *map(_instant, (job.submitted_at, job.started_at, job.training_since, job.ends_by)),
        *map(_seconds, (row.ran, row.left)),
        *map(_instant, (start.p50, start.p90) if start else (None, None)),
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else api_time(at)


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())
