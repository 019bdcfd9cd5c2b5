"""``trainmaster show``, ``why``, ``tree``, ``priority``, ``hold``, ``after``: what is asked of one job."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from trainmaster.core.jobs.row_words import length

from trainmaster_client.api import Document
from trainmaster_client.cli.array_lines import array_sheet, array_why
from trainmaster_client.cli.connection import complete_job, connect
from trainmaster_client.cli.history import losses
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.array_views import array_view, is_array, job_or_array
from trainmaster_client.jobs.dependency_trees import DependencyTree
from trainmaster_client.jobs.instants import likely_start
from trainmaster_client.jobs.job_conditions import condition_texts
from trainmaster_client.jobs.job_views import Attempt, JobView, job_view
from trainmaster_client.jobs.progress import dependents_note, place_line, transition_line
from trainmaster_client.jobs.why_lines import why_lines

HIGHEST_PRIORITY = 1000
_FACTS = {
    "team": "team",
    "submitted_by": "submitted by",
    "pool": "pool",
    "priority": "priority",
    "effective_priority": "effective priority",
    "submitted_at": "submitted",
    "started_at": "started",
    "ended_at": "ended",
    "training_job_arn": "training job",
    "preemptions": "preemptions",
    "retries": "retries",
    "cost_usd": "cost in USD",
}

JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="The name of the job or array, or that of any attempt.",
        autocompletion=complete_job,
    ),
]


def show(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Show one job or array: where it stands and why, its attempts, its history."""
    api = connect()
    document = job_or_array(lambda: api.job(job), lambda: api.array(job))
    if as_json:
        print_json(document)
    elif is_array(document):
        print_lines(array_sheet(document))
    else:
        print_lines(sheet(document, now=datetime.now(UTC)))


def why(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Show why a job waits, who uses its instances, who is ahead, when it may start and what would help."""
    api = connect()
    document = job_or_array(lambda: api.job(job), lambda: api.array(job))
    if as_json:
        print_json(document)
    elif is_array(document):
        print_lines(array_why(document))
    else:
        print_lines(why_lines(api, document, now=datetime.now(UTC)))


def priority(
    job: JobName,
    number: Annotated[
        int, typer.Argument(min=0, max=HIGHEST_PRIORITY, metavar="N", help="The higher, the earlier.")
    ],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Change the priority of a job or an array: it moves in the queue, or is harder to preempt."""
    _print(_changed(job, priority=number), f"priority {number}", as_json=as_json)


def hold(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Hold a waiting job, or all waiting tasks of an array, until released; they keep their age."""
    _print(_changed(job, held=True), "", as_json=as_json)


def release(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Release a held job or array: it waits in the queue again."""
    _print(_changed(job, held=False), "", as_json=as_json)


def after(
    job: JobName,
    conditions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TYPE:]JOB...", help="Jobs to wait for; TYPE is afterok, afterany ..."),
    ] = None,
    *,
    none: Annotated[bool, typer.Option("--none", help="It is to wait for no job.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Change the jobs that a job waits for, as long as it waits for them."""
    if none is bool(conditions):
        raise InvalidArgumentError("Which jobs?", hint="Name them, or give --none.")
    text = " ".join(condition_texts(conditions or []))
    _print(connect().change(job, after=text), "", as_json=as_json)


def tree(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Draw the jobs that a job waits for and those that wait for it, with their states and why."""
    drawn = DependencyTree(api=connect(), now=datetime.now(UTC))
    if as_json:
        print_json({"job": job, "jobs": drawn.documents(job)})
        return
    print_lines(drawn.lines(job))


def _changed(name: str, **changes: Any) -> Document:  # noqa: ANN401  as the API client takes them
    api = connect()
    return job_or_array(lambda: api.change(name, **changes), lambda: api.change_array(name, changes))


def _print(document: Document, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    if is_array(document):
        print_lines([array_view(document).line])
        return
    view = job_view(document)
    standing = place_line(view) if view.is_waiting else view.state
    parts = ", ".join(part for part in (done, standing) if part)
    print_lines([f"{view.name}: {parts}{dependents_note(document)}"])


def sheet(document: Document, *, now: datetime) -> list[str]:
    """Return the lines of ``trainmaster show``."""
    job = job_view(document)
    return [
        f"{job.name}: {_standing(job)}",
        *_facts(document, job, now),
        *_section("Attempts", [line for attempt in job.attempts for line in _attempt_lines(attempt, now)]),
        *_section("History", [transition_line(transition, job) for transition in job.history]),
    ]


def _standing(job: JobView) -> str:
    if job.is_waiting:
        return f"{job.state}. {place_line(job)}"
    return f"{job.state} - {job.why}" if job.why else job.state


def _facts(document: Document, job: JobView, now: datetime) -> Iterator[str]:
    yield f"  instances: {job.instances}"
    for key, label in _FACTS.items():
        if document.get(key) not in (None, ""):
            estimate = " (estimate)" if key == "cost_usd" and document.get("cost_is_estimate") else ""
            value = f"{document[key]:.2f}" if key == "cost_usd" else printable(document[key])
            yield f"  {label}: {value}{estimate}"
    if because := document.get("shapes_because"):
        yield f"  shapes: {printable(because)}"
    if fields := document.get("set_by_pool"):
        yield f"  set by the pool: {', '.join(printable(field) for field in fields)}"
    if start := document.get("estimated_start"):
        yield f"  {likely_start(start, now=now, zone=UTC)}"
    elif note := document.get("estimate_note"):
        yield f"  start {printable(note)}"
    yield from (f"  {lost}" for lost in losses(document))


def _attempt_lines(attempt: Attempt, now: datetime) -> list[str]:
    saved = attempt.last_checkpoint
    age = f" ({length(now - saved)} ago)" if saved and attempt.ended_at is None else ""
    at_least = "at least " if attempt.last_checkpoint_is_lower_bound else ""
    checkpoint = [f"newest checkpoint: {at_least}{_time(saved)}{age}"] if saved else []
    diagnosis = [attempt.diagnosis] if attempt.diagnosis else []
    return [_attempt_line(attempt), *(f"   {line}" for line in (*checkpoint, *diagnosis, *attempt.warnings))]


def _attempt_line(attempt: Attempt) -> str:
    parts = [
        f"{attempt.number}  {attempt.training_job_name}",
        " ".join(dict.fromkeys(word for word in (attempt.status, attempt.secondary_status) if word)),
        attempt.capacity_type,
        f"{_time(attempt.started_at)} to {_time(attempt.ended_at)}" if attempt.started_at else "",
        attempt.why,
    ]
    return ", ".join(part for part in parts if part)


def _time(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S") if at else "now"


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines)] if lines else []
