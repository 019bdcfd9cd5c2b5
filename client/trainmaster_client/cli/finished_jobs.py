"""Jobs that are over as a table, or where it does not fit as two lines a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trainmaster_client.api import Document
from trainmaster_client.cli.instants import length
from trainmaster_client.cli.queue_table import REASON_COLUMNS, STYLES
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.jobs.job_views import JobView, job_view

_HEADINGS = ("JOB", "TEAM", "STATE", "ENDED", "RAN", "ATTEMPTS", "PREEMPTED", "LOST", "USD")
_TO_THE_RIGHT = frozenset({"RAN", "ATTEMPTS", "PREEMPTED", "LOST", "USD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    name: str
    view: JobView
    ended_at: datetime
    ran: timedelta | None
    """From when it first ran; None: it never did."""
    preemptions: int
    lost: timedelta
    """Work done twice and time wasted, over all causes."""
    cost_usd: float | None
    """None: a price is unknown."""
    document: Document

    @property
    def attempts(self) -> int:
        return (self.view.attempt or 0) + (self.ran is not None)

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            self.view.team,
            self.view.state,
            self.ended_at.strftime("%Y-%m-%d %H:%M"),
            "-" if self.ran is None else length(self.ran),
            str(self.attempts),
            str(self.preemptions),
            length(self.lost),
            "?" if self.cost_usd is None else f"{self.cost_usd:.2f}",
        )


def finished_job(document: Document) -> FinishedJob:
    """Raises MalformedViewError."""
    view = job_view(document)
    try:
        ended_at = datetime.fromisoformat(document["ended_at"])
        return FinishedJob(
            name=view.name or "",
            view=view,
            ended_at=ended_at,
            ran=ended_at - view.started_at if view.started_at else None,
            preemptions=int(document.get("preemptions") or 0),
            lost=timedelta(seconds=sum((document.get("wasted_seconds") or {}).values())),
            cost_usd=document.get("cost_usd"),
            document=document,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def print_finished(jobs: Sequence[FinishedJob], *, to: Console) -> None:
    table = _table(jobs)
    if not jobs:
        to.print("No jobs.")
    elif Measurement.get(to, to.options.update(width=UNLIMITED_COLUMNS), table).minimum <= to.width:
        to.print(table)
    else:
        for job in jobs:
            _print_narrow(job, to)


def _table(jobs: Sequence[FinishedJob]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=True, justify="right" if heading in _TO_THE_RIGHT else "left")
    table.add_column("WHY", overflow="fold", min_width=REASON_COLUMNS)
    for job in jobs:
        name, team, state, *others = job.cells
        table.add_row(name, team, Text(state, style=STYLES.get(state, "")), *others, job.view.why)
    return table


def _print_narrow(job: FinishedJob, to: Console) -> None:
    cost = "cost unknown" if job.cost_usd is None else f"{job.cost_usd:.2f} USD"
    facts = [
        f"{job.view.state} {job.ended_at:%Y-%m-%d %H:%M}",
        f"ran {length(job.ran)}" if job.ran is not None else "never ran",
        f"{job.attempts} attempts" if job.attempts > 1 else "",
        f"preempted {job.preemptions}x" if job.preemptions else "",
        f"lost {length(job.lost)}" if job.lost else "",
        cost,
        job.view.why,
    ]
    to.print(Text(job.name, style="bold"))
    to.print(Padding(Text(", ".join(fact for fact in facts if fact)), (0, 0, 0, 4), expand=False))
