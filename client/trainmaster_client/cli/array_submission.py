"""Arrays from the command line: options of ``submit``, and a request with its tasks sent or tried out."""

import csv
import io
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from trainmaster_client.api import field_problem, new_key
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.dry_run import foreseen
from trainmaster_client.cli.screen import print_json, print_lines
from trainmaster_client.errors import FieldProblem, InvalidArgumentError, InvalidOptionsError
from trainmaster_client.jobs.array_requests import TaskSelection, array_body
from trainmaster_client.jobs.array_views import array_view

NOT_VALID = 1
"""The exit code of a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFlags:
    """Options that make an array of a request."""

    array: Annotated[
        str | None,
        typer.Option(metavar="INDICES", help="Make it an array: 0-63, 1-7:2, 1,3,5; 0-63%8 runs 8 at once."),
    ] = None
    values: Annotated[
        typer.FileText | None,
        typer.Option(
            metavar="CSV", help="Hyperparameters of each task: a line a task below a line of names."
        ),
    ] = None
    stop_after: Annotated[
        int | None,
        typer.Option(
            "--stop-after-failures", min=0, metavar="N", help="Equal failures that hold the array; 0: never."
        ),
    ] = None

    @property
    def selection(self) -> TaskSelection | None:
        """The tasks; None if a single job is meant. Raises InvalidArgumentError, InvalidOptionsError."""
        if self.array is None and self.values is None:
            if self.stop_after is not None:
                hint = "Give --array, or --values."
                raise InvalidArgumentError("--stop-after-failures is for arrays.", hint=hint)
            return None
        rows = None if self.values is None else table_rows(self.values.read(), source=self.values.name)
        return TaskSelection(tasks=self.array, values=rows, stop_after_failures=self.stop_after)


def table_rows(text: str, *, source: str) -> list[dict[str, str]]:
    """Read a table of values: names in the first line, then a task a line.

    Raises:
        InvalidOptionsError: Names the lines that do not fit the first one.
    """
    lines = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    rows = [(number, row) for number, row in enumerate(lines, start=1) if any(cell.strip() for cell in row)]
    if len(rows) < 2:  # noqa: PLR2004  a head and a task
        hint = "write the names of hyperparameters in the first line, and a task a line below"
        raise InvalidOptionsError((FieldProblem(field=source, message="has no values", hint=hint),))
    names = [name.strip() for name in rows[0][1]]
    problems = [
        FieldProblem(field=f"{source}:1", message=f"column {number} has no name, or another's")
        for number, name in enumerate(names, start=1)
        if not name or names.index(name) < number - 1
    ]
    problems += [
        FieldProblem(
            field=f"{source}:{line}", message=f"has {len(row)} values for {len(names)} names (task {task})"
        )
        for task, (line, row) in enumerate(rows[1:])
        if len(row) != len(names)
    ]
    if problems:
        raise InvalidOptionsError(tuple(problems))
    return [dict(zip(names, (cell.strip() for cell in row), strict=True)) for _, row in rows[1:]]


def send_array(
    request: dict[str, Any], selection: TaskSelection, *, dry_run: bool, team: str | None, as_json: bool
) -> None:
    """Submit an array or, with ``dry_run``, only report what would become of it."""
    body, api = array_body(request, selection), connect()
    document = api.try_array(body, team=team) if dry_run else api.add_array(body, key=new_key())
    if as_json:
        print_json(document)
    elif dry_run:
        print_lines(foreseen(document))
    else:
        print_lines([array_view(document.get("array") or {}).line])
        print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())
    if dry_run and not document.get("valid"):
        raise typer.Exit(NOT_VALID)
