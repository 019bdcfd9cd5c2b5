"""``trainmaster submit``: a CreateTrainingJob request from a file into the queue, or only tried out."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.array_submission import ArrayFlags, send_array
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import complete_job, connect
from trainmaster_client.cli.dry_run import foreseen
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.request_documents import read_request
from trainmaster_client.jobs.array_views import array_view
from trainmaster_client.jobs.job_conditions import with_conditions
from trainmaster_client.jobs.job_views import job_view
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
            help="Wait for the end of this job; may be repeated. TYPE: afterok (the default), afterany,"
            " afternotok or, between arrays, aftercorr.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A submission that is only tried."""

    dry_run: DryRun = False
    team: AsTeam = None

    def check(self) -> None:
        """Raises InvalidArgumentError for a team without a trial."""
        if self.team is not None and not self.dry_run:
            hint = "Add --dry-run, or name the team in the request's tag 'team'."
            raise InvalidArgumentError("--team is for dry runs.", hint=hint)


@with_options
def submit(
    file: OptionalRequestFile = None,
    *,
    source: RequestSource,
    tasks: ArrayFlags,
    trial: Trial,
    as_json: JsonFlag = False,
) -> None:
    """Queue the training job that a file describes, or an array of it, as boto3 takes it."""
    trial.check()
    request = with_conditions(_request(file, source), source.after, after_failed=source.after_failed)
    if (selection := tasks.selection) is not None:
        send_array(request, selection, dry_run=trial.dry_run, team=trial.team, as_json=as_json)
        return
    if trial.dry_run:
        _try(request, trial.team, as_json=as_json)
        return
    document = connect().add_job(request)
    if as_json:
        print_json(document)
        return
    print_lines([_submitted(document)])
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


def _submitted(document: Document) -> str:
    """Say what became of a request, which may have the tag of an array."""
    if array := document.get("array"):
        return array_view(array).line
    view = job_view(document.get("job") or {})
    return f"{view.name}: {place_line(view) if view.is_waiting else view.state}"


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
        print_lines(foreseen(document))
    if not document.get("valid"):
        raise typer.Exit(NOT_VALID)
