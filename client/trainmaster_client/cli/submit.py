"""``trainmaster submit``: a CreateTrainingJob request from a file into the queue, or only tried out."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import complete_job, connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.request_documents import read_request
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import likely_start
from trainmaster_client.jobs.job_conditions import with_conditions
from trainmaster_client.jobs.job_views import FINAL_STATES, NO_NAME, job_view
from trainmaster_client.jobs.progress import place_line
from trainmaster_client.jobs.resubmission import request_again

RequestFile = Annotated[
    typer.FileBinaryRead,
    typer.Argument(metavar="FILE", help="A CreateTrainingJob request, JSON or YAML; - reads standard input."),
]
OptionalRequestFile = Annotated[
    typer.FileBinaryRead | None,
    typer.Argument(
        metavar="FILE",
        help="A CreateTrainingJob request, JSON or YAML; - reads standard input.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only report what would happen; nothing is stored.")]
AsTeam = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Try it for this team: for admins, who may be in no team themselves."),
]
NOT_VALID = 1
"""The exit code of a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSource:
    """Sources of the request beside a file, the job's name, and the jobs that it waits for."""

    from_job: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="JOB",
            help="Submit the request of this job again, under another name.",
            autocompletion=complete_job,
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its TrainingJobName; with --from the default ends in the time."),
    ] = None
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TYPE:]JOB",
            help="Wait for the end of this job; may be repeated. TYPE: afterok (the default), afterany or"
            " afternotok.",
            autocompletion=complete_job,
        ),
    ] = None
    after_failed: Annotated[
        str | None,
        typer.Option(
            metavar="stop|hold",
            help="What becomes of it once it can wait for nothing any more; the default is stop.",
        ),
    ] = None


@with_options
def submit(
    file: OptionalRequestFile = None,
    *,
    source: RequestSource,
    dry_run: DryRun = False,
    team: AsTeam = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue the training job that a file describes, as boto3's create_training_job would take it."""
    if team is not None and not dry_run:
        hint = "Add --dry-run, or name the team in the request's tag 'team'."
        raise InvalidArgumentError("--team is for dry runs.", hint=hint)
    request = with_conditions(_request(file, source), source.after, after_failed=source.after_failed)
    if dry_run:
        _try(request, team, as_json=as_json)
        return
    document = connect().add_job(request)
    if as_json:
        print_json(document)
        return
    view = job_view(document.get("job") or {})
    print_lines([f"{view.name}: {place_line(view) if view.is_waiting else view.state}"])
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


def _request(file: typer.FileBinaryRead | None, source: RequestSource) -> dict[str, Any]:
    """Read the request from the one place that is given."""
    if (file is None) is (source.from_job is None):
        raise InvalidArgumentError("One request is needed.", hint="Give FILE, or --from JOB.")
    if source.from_job is not None:
        return request_again(connect(), source.from_job, name=source.name, now=datetime.now(UTC))
    assert file is not None
    request = parse_request(file.read(), source=file.name)
    return request if source.name is None else {**request, "TrainingJobName": source.name}


def parse_request(text: bytes, *, source: str) -> dict[str, Any]:
    """Read the request of a file; what was dropped from it is said on standard error.

    Raises:
        InvalidArgumentError: It is not a request, or wraps one.
    """
    document = read_request(text, source=source)
    say("\n".join(f"Note: {note}" for note in document.notes))
    return document.request


def _try(request: dict[str, Any], team: str | None, *, as_json: bool) -> None:
    """Try a request; one that would be refused ends as a refusal, although the API has answered."""
    document = connect().try_job(request, team=team)
    if as_json:
        print_json(document)
    else:
        print_lines(_foreseen(document))
    if not document.get("valid"):
        raise typer.Exit(NOT_VALID)


def _foreseen(document: Document) -> Iterator[str]:
    warnings = [f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ()]
    if not document.get("valid"):
        yield "Not valid: it would be refused."
        yield from (f"  {field_problem(violation)}" for violation in document.get("violations") or ())
        yield from warnings
        return
    place, parents = document.get("position"), document.get("after") or ()
    where = f"at position {printable(place)}" if place is not None else "behind more than 1000 jobs"
    if any(parent.get("state") not in FINAL_STATES for parent in parents):
        where = f"once {', '.join(printable(parent.get('job') or NO_NAME) for parent in parents)} ended"
    yield f"Valid: it would wait in pool {printable(document.get('pool'))}, {where}."
    start = document.get("estimated_start")
    if isinstance(start, dict):
        yield f"{likely_start(start, now=datetime.now(UTC))}."
    elif document.get("estimate_note"):
        yield f"Start {printable(document['estimate_note'])}."
    victims = document.get("would_preempt") or ()
    if victims:
        names = ", ".join(printable(name) if name else "a job of another team" for name in victims)
        yield f"It would preempt: {names}."
    cost = document.get("estimated_cost_usd")
    yield f"Likely cost in USD: {printable(cost) if cost is not None else 'unknown, a price is missing'}."
    yield from warnings
    yield from (_spot_line(record) for record in document.get("spot_record") or ())


def _spot_line(record: Document) -> str:
    name, expected = printable(record.get("instance_type")), record.get("expected_interruptions")
    if expected is None:
        return f"Spot {name}: no job of this stack ran on it in the last 30 days."
    return f"Spot {name}: at the recent rate it would be interrupted {expected:g} times."
