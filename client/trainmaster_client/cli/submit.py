"""``trainmaster submit``: a CreateTrainingJob request from a file into the queue, or only tried out."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.instants import likely_start
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.progress import place_line

RequestFile = Annotated[
    typer.FileBinaryRead,
    typer.Argument(metavar="FILE", help="A CreateTrainingJob request as JSON; - reads standard input."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only report what would happen; nothing is stored.")]
AsTeam = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Try it for this team: for admins, who may be in no team themselves."),
]
NOT_VALID = 1
"""The exit code of a refusal."""


def submit(
    file: RequestFile, *, dry_run: DryRun = False, team: AsTeam = None, as_json: JsonFlag = False
) -> None:
    """Queue the training job that a file describes, as boto3's create_training_job would take it."""
    request = parse_request(file.read(), source=file.name)
    if dry_run:
        _try(request, team, as_json=as_json)
        return
    if team is not None:
        hint = "Add --dry-run, or name the team in the request's tag 'team'."
        raise InvalidArgumentError("--team is for dry runs.", hint=hint)
    document = connect().add_job(request)
    if as_json:
        print_json(document)
        return
    view = job_view(document.get("job") or {})
    print_lines([f"{view.name}: {place_line(view) if view.is_waiting else view.state}"])
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


def parse_request(text: bytes, *, source: str) -> dict[str, Any]:
    """Raises InvalidArgumentError."""
    try:
        request = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{source}: {error}.", hint=_HINT) from error
    if not isinstance(request, dict):
        raise InvalidArgumentError(f"{source} holds no request.", hint=_HINT)
    return request


_HINT = 'Give JSON like {"TrainingJobName": ...}, as boto3 takes it. Nothing was sent.'


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON's parser lets the last of two equal keys win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (repeated, _), *_others = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {repeated!r} is written twice")
    return found


def _try(request: dict[str, Any], team: str | None, *, as_json: bool) -> None:
    """A request that would be refused ends as a refusal, although the API has answered."""
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
        yield from (f"  {field_problem(one)}" for one in document.get("violations") or ())
        yield from warnings
        return
    place = document.get("position")
    where = f"at position {printable(place)}" if place is not None else "behind more than 1000 jobs"
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
