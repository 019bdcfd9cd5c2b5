"""The queue as it fits on a screen: a line a job, or on a narrow screen two."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trainmaster_client.cli.queue_columns import NOTHING, STATE, Grid, QueueRow, fitted_grid, whole_grid
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS
from trainmaster_client.cli.short_names import shortened
from trainmaster_client.jobs.instants import length, short_length
from trainmaster_client.jobs.job_views import NO_NAME, JobView

__all__ = ["REASON_COLUMNS", "STYLES", "age", "queue_lines", "queue_picture"]

REASON_COLUMNS = 20
"""A reason folded into less is not readable."""

STYLES = {
    "running": "green",
    "starting": "green",
    "failed": "red",
    "preempting": "yellow",
    "preempted": "yellow",
    "stopping": "yellow",
}


def queue_picture(
    rows: Sequence[QueueRow], *, to: Console, lines: int | None = None, has_starts: bool = False
) -> RenderableType:
    """Draw the queue to fit the screen; with ``lines`` also on that many lines: then the rest is counted.

    ``has_starts``: the stack estimates starts; a pipe has a column for them even where there are none.
    """
    seen = rows if lines is None else rows[:lines]  # a job takes a line at least
    rest = len(rows) - len(seen)
    is_whole = to.width >= UNLIMITED_COLUMNS
    grid = whole_grid(seen, has_starts=has_starts) if is_whole else fitted_grid(seen, to.width)
    if grid is not None:
        return _cut([Group(line) for line in queue_lines(grid)], lines, to, uncounted=(1, rest))
    names = shortened([_title(row.job) for row in seen], to.width)
    return _cut([_narrow(row, names) for row in seen], lines, to, uncounted=(0, rest))


def queue_lines(grid: Grid) -> list[Text]:
    """Return the headings, then a line a job."""
    head = _line(grid, tuple(column.heading for column in grid.columns))
    head.stylize("bold")
    return [head, *(_line(grid, cells) for cells in grid.lines)]


def age(since: datetime | None, now: datetime) -> str:
    """Write the time since an instant; ``-`` if it is not known."""
    return NOTHING if since is None else length(now - since)


def _line(grid: Grid, cells: Sequence[str]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for number, (column, cell, width) in enumerate(zip(grid.columns, cells, grid.widths, strict=True)):
        is_last = number == len(cells) - 1
        blank = " " * (width - cell_len(cell))
        text = f"{blank}{cell}" if column.to_the_right else f"{cell}{'' if is_last else blank}"
        line.append(text, style=STYLES.get(cell, "") if column is STATE else "")
        line.append("" if is_last else " " * grid.gap)
    return line


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


def _narrow(row: QueueRow, names: Mapping[str, str]) -> RenderableType:
    job = row.job
    facts = [
        f"{job.team} in {job.pool}" if job.team and job.pool else job.team or job.pool,
        job.state,
        f"position {row.position}" if row.position != NOTHING else "",
        f"priority {job.priority}",
        job.instances,
        f"attempt {job.attempt}" if job.attempt else "",
        f"age {row.age}" if row.age != NOTHING else "",
        f"ran {short_length(row.ran)}" if row.ran is not None else "",
        f"at most {short_length(row.left)} left" if row.left is not None else "",
        f"likely to start {_in(row)}" if row.start else "",
        job.why,
    ]
    return Group(
        Text(names[_title(job)], style="bold"),
        Padding(Text(", ".join(fact for fact in facts if fact)), (0, 0, 0, 4), expand=False),
    )


def _in(row: QueueRow) -> str:
    return row.starts if row.starts == "now" else f"in {row.starts}"


def _title(job: JobView) -> str:
    return job.name or NO_NAME
