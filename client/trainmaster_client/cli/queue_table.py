"""The queue as a table, or where it does not fit as two lines a job."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trainmaster_client.cli.instants import length
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS
from trainmaster_client.jobs.job_views import JobView

REASON_COLUMNS = 20
"""A reason folded into less is not readable."""

NO_NAME = "(other team's)"

STYLES = {
    "running": "green",
    "starting": "green",
    "failed": "red",
    "preempting": "yellow",
    "preempted": "yellow",
    "stopping": "yellow",
}


def print_queue(jobs: Sequence[JobView], *, now: datetime, to: Console) -> None:
    to.print(queue_picture(jobs, now=now, to=to))


def queue_picture(jobs: Sequence[JobView], *, now: datetime, to: Console) -> RenderableType:
    """As it fits on that screen."""
    if not jobs:
        return Text("No jobs.")
    table = _table(jobs, now)
    if Measurement.get(to, to.options.update(width=UNLIMITED_COLUMNS), table).minimum <= to.width:
        return table
    return Group(*(_narrow(job, now) for job in jobs))


def age(since: datetime | None, now: datetime) -> str:
    """``-`` when nobody may know."""
    if since is None:
        return "-"
    return length(now - since)


def _table(jobs: Sequence[JobView], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("JOB", "TEAM", "POOL", "STATE", "INSTANCES"):
        table.add_column(heading, no_wrap=True)
    for heading in ("PRIO", "POS", "ATTEMPT", "AGE"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("REASON", overflow="fold", min_width=REASON_COLUMNS)
    for job in jobs:
        table.add_row(*_cells(job, now))
    return table


def _cells(job: JobView, now: datetime) -> tuple[Text | str, ...]:
    return (
        job.name or NO_NAME,
        job.team,
        job.pool,
        Text(job.state, style=STYLES.get(job.state, "")),
        job.instances,
        str(job.priority),
        _position(job) or "-",
        "-" if job.attempt is None else str(job.attempt),
        age(job.submitted_at or job.started_at, now),
        job.why,
    )


def _narrow(job: JobView, now: datetime) -> RenderableType:
    position, since = _position(job), job.submitted_at or job.started_at
    facts = [
        job.state,
        f"position {position}" if position else "",
        f"priority {job.priority}",
        job.instances,
        f"attempt {job.attempt}" if job.attempt else "",
        age(since, now) if since else "",
        job.why,
    ]
    return Group(
        Text(job.name or f"{NO_NAME} {job.team}", style="bold"),
        Padding(Text(", ".join(fact for fact in facts if fact)), (0, 0, 0, 4), expand=False),
    )


def _position(job: JobView) -> str:
    if job.position is not None:
        return str(job.position)
    return f">{job.ahead_at_least}" if job.ahead_at_least is not None else ""
