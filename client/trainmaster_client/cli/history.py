"""``trainmaster history``: what became of one job step by step, or of the team's jobs that are over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from trainmaster.core.jobs.spans import length

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import LARGEST_PAGE, complete_job, connect
from trainmaster_client.cli.known_names import complete_team
from trainmaster_client.cli.queue_table import REASON_COLUMNS, state_style
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS, JsonFlag, console, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError, MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import instant
from trainmaster_client.jobs.job_views import FINAL_STATES, JobView, Transition, job_view
from trainmaster_client.jobs.progress import transition_line

_HEADINGS = ("JOB", "TEAM", "STATE", "ENDED", "RAN", "ATTEMPTS", "PREEMPTED", "LOST", "USD")
_TO_THE_RIGHT = frozenset({"RAN", "ATTEMPTS", "PREEMPTED", "LOST", "USD"})

MOST_PAGES = 20
"""Pages read of each final state; other teams' jobs are among them, without a name."""

SHOWN = 50

JobNameOrNone = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="Without it: finished jobs.", autocompletion=complete_job),
]

MOST_STEPS = 200
"""The API gives the last ones; earlier ones are not summed up."""

_SUMMED = {
    "waited": frozenset({"pending", "preempted", "held"}),
    "started": frozenset({"starting"}),
    "ran": frozenset({"running"}),
    "stopped": frozenset({"preempting", "stopping"}),
}
"""Words for what the job did in its states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    name: str
    view: JobView
    ended_at: datetime
    ran: timedelta | None
    """Time since the job first ran; None if it never did."""
    preemptions: int
    lost: timedelta
    """Work done twice and time wasted, over all causes."""
    cost_usd: float | None
    """USD of the job; None if a price is unknown."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJobFilters:
    """Jobs that are over."""

    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="Only completed, failed or stopped ones.",
            autocompletion=lambda: sorted(FINAL_STATES),
        ),
    ] = None
    team: Annotated[
        str | None, typer.Option(metavar="TEAM", help="Only this team.", autocompletion=complete_team)
    ] = None
    since: Annotated[
        str | None, typer.Option(metavar="AGO", help="Ended since then: e.g. 90m, 12h, 7d, or an instant.")
    ] = None
    everything: Annotated[bool, typer.Option("--all", help=f"More than the newest {SHOWN}.")] = False


@with_options
def history(
    job: JobNameOrNone = None,
    *,
    which: FinishedJobFilters,
    as_json: JsonFlag = False,
) -> None:
    """Show each step of a job with how long it took and why, or finished jobs, the newest first."""
    now = datetime.now(UTC)
    after = instant(which.since, now=now) if which.since else None
    if job is None:
        _show_finished(which, after, as_json=as_json)
        return
    if which != FinishedJobFilters():
        raise InvalidArgumentError(
            "These options are for lists of finished jobs.", hint="Leave out JOB, or the options."
        )
    document = connect().job(job, estimate=False)
    if as_json:
        print_json(document)
    else:
        print_lines(past_lines(document, now=now))


def _show_finished(which: FinishedJobFilters, after: datetime | None, *, as_json: bool) -> None:
    state = which.state
    if state is not None and state not in FINAL_STATES:
        raise InvalidArgumentError(
            f"--state: {state!r} is not a final state;",
            hint=f"use one of {', '.join(sorted(FINAL_STATES))}.",
        )
    finished, is_whole = _finished(connect(), [state] if state else sorted(FINAL_STATES), which.team)
    recent = [job for job in finished if after is None or job.ended_at >= after]
    recent.sort(key=lambda job: (job.ended_at, job.name), reverse=True)
    shown = recent if which.everything else recent[:SHOWN]
    if as_json:
        print_json({"jobs": [job.document for job in shown], "next_token": None})
    else:
        print_finished(shown, to=console())
    if len(shown) < len(recent):
        say(f"{len(recent) - len(shown)} more: --all shows them.")
    if not is_whole:
        say("There are more than were read: narrow them with --team or --state.")


def _finished(api: ApiClient, states: list[str], team: str | None) -> tuple[list[FinishedJob], bool]:
    """Return the finished jobs with a name, and whether these are all of them."""
    jobs: list[Any] = []
    is_whole = True
    for state in states:
        token: str | None = None
        for _ in range(MOST_PAGES):
            page = api.jobs(state=state, team=team, limit=LARGEST_PAGE, next_token=token)
            jobs += page.get("jobs") or ()
            token = page.get("next_token")
            if not token:
                break
        is_whole = is_whole and not token
    return [finished_job(job) for job in jobs if job.get("name")], is_whole


def past_lines(document: Document, *, now: datetime) -> Iterator[str]:
    """Yield the sums of the job's history, then a line a step."""
    job = job_view(document)
    spans = _spans(job.history, is_over=job.is_final, now=now)
    yield f"{job.name}: {job.state}{f' - {job.why}' if job.is_final and job.why else ''}"
    if sums := ", ".join(_sums(job.history, spans)):
        yield f"  {sums}"
    if counts := ", ".join(_counts(document)):
        yield f"  {counts}"
    if len(job.history) >= MOST_STEPS:
        yield f"  only the last {MOST_STEPS} steps are shown"
    yield from (_line(step, span, job) for step, span in zip(job.history, spans, strict=True))


def _spans(history: Sequence[Transition], *, is_over: bool, now: datetime) -> list[timedelta | None]:
    """Return how long each step lasted; None for the end, which lasts."""
    if not history:
        return []
    ends = [later.at for later in history[1:]]
    last = None if is_over else now - history[-1].at
    return [*(end - step.at for end, step in zip(ends, history, strict=False)), last]


def _sums(history: Sequence[Transition], spans: Sequence[timedelta | None]) -> Iterator[str]:
    for word, states in _SUMMED.items():
        parts = [
            span for step, span in zip(history, spans, strict=True) if span is not None and step.to in states
        ]
        if total := sum(parts, timedelta()):
            yield f"{word} {length(total)}"


def _counts(document: Document) -> Iterator[str]:
    """Yield how often the job came back, what was lost, what it cost."""
    for key, singular, many in (
        ("preemptions", "preemption", "preemptions"),
        ("retries", "retry", "retries"),
    ):
        if count := int(document.get(key) or 0):
            yield f"{count} {singular if count == 1 else many}"
    yield from losses(document)
    if (cost := document.get("cost_usd")) is not None:
        yield f"{cost:.2f} USD{' so far' if document.get('cost_is_estimate') else ''}"


def losses(document: Document) -> Iterator[str]:
    """Time that was wasted, by its cause."""
    for cause, seconds in (document.get("wasted_seconds") or {}).items():
        if seconds:
            yield f"lost {length(timedelta(seconds=seconds))} to {printable(cause)}"


def _line(step: Transition, span: timedelta | None, job: JobView) -> str:
    at, _, text = transition_line(step, job).partition(" ")
    clock, _, what = text.partition(" ")
    return f"{at} {clock} {length(span) if span is not None else '-':>7}  {what}"


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
    """Print the jobs as a table, or as two lines a job if the table does not fit."""
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
        table.add_row(name, team, Text(state, style=state_style(state)), *others, job.view.why)
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
