"""``trainmaster cancel``: one job, several by name, or all that match, after a question."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.cancelled_targets import CancelFilters, Target, matching_targets
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import complete_job, connect
from trainmaster_client.cli.exit_codes import ExitCode, exit_code
from trainmaster_client.cli.known_names import require_state
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines, say
from trainmaster_client.errors import (
    ConflictError,
    ForbiddenError,
    GatewayRefusedError,
    InvalidArgumentError,
    NotFoundError,
    RepairNeededError,
    TrainmasterClientError,
)
from trainmaster_client.jobs.array_views import array_view, is_array
from trainmaster_client.jobs.job_views import FINAL_STATES, job_view
from trainmaster_client.jobs.progress import dependents_note, place_line

_NAMED_IN_QUESTION = 5
"""Jobs that the question names; more are only counted."""

_OF_ONE_JOB = (NotFoundError, ConflictError, ForbiddenError, InvalidArgumentError, RepairNeededError)
"""Refusals after which the next job may still be cancelled."""

JobNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="JOB...",
        help="Names of jobs, or of any of their attempts.",
        autocompletion=complete_job,
        show_default=False,
    ),
]


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """The outcome of each job so far."""

    cancelled: list[Document] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Jobs that ended between the question and their turn; nothing is left to cancel."""
    failed: dict[str, TrainmasterClientError] = field(default_factory=dict)

    @property
    def code(self) -> ExitCode:
        """Exit code that all failures share; 1 if they differ."""
        codes = {exit_code(error) for error in self.failed.values()}
        return codes.pop() if len(codes) == 1 else ExitCode.REFUSED if codes else ExitCode.OK


@with_options
def cancel(
    jobs: JobNames = None,
    *,
    filters: CancelFilters,
    tasks: Annotated[
        str | None, typer.Option(metavar="INDICES", help="Only these tasks of one array, e.g. 3-7.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before jobs that match go.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Take jobs and arrays out of the queue, or stop them if they run. They are not requeued."""
    names = list(dict.fromkeys(jobs or ()))
    _check(names, filters)
    if tasks is not None and len(names) != 1:
        raise InvalidArgumentError("--tasks is for one array.", hint="Name it: cancel ARRAY --tasks 3-7.")
    api = connect()
    if len(names) == 1:
        target = Target(name=names[0], tasks=tasks)
        document = target.cancel(api) if tasks is None else api.cancel_array(names[0], tasks=tasks)
        if as_json:
            print_json(document)
        else:
            print_lines([_line(document)])
        return
    targets = [Target(name=name) for name in names] or matching_targets(api, filters)
    if not names and targets and not yes:
        _ask(targets)
    outcome = _cancelled(api, targets, are_named=bool(names), quiet=as_json)
    if as_json:
        print_json(_as_document(outcome))
    else:
        print_lines([_summary(outcome)])
    if outcome.code is not ExitCode.OK:
        raise typer.Exit(outcome.code)


def _check(names: Sequence[str], filters: CancelFilters) -> None:
    if names and filters.are_given:
        raise InvalidArgumentError(
            "Names do not go with --mine, --team, --state and --pool.", hint="Give one."
        )
    if not names and not filters.are_given:
        raise InvalidArgumentError(
            "Which jobs?",
            hint="Name them, or give --mine, --team, --state or --pool, all of which must match.",
        )
    require_state(filters.state)
    if filters.state in FINAL_STATES:
        raise InvalidArgumentError(
            f"--state: jobs that are {filters.state} have ended;", hint="nothing is left to cancel."
        )


def _ask(matching: Sequence[Target]) -> None:
    """Show how many jobs would go, and ask.

    Raises:
        InvalidArgumentError: There is no terminal to ask on.
        typer.Exit: The answer was no.
    """
    waiting = sum(target.is_waiting for target in matching)
    unnamed = len(matching) - _NAMED_IN_QUESTION
    names = ", ".join(target.shown for target in matching[:_NAMED_IN_QUESTION])
    count = f"{_jobs(len(matching))} ({waiting} waiting, {len(matching) - waiting} started)"
    say(f"This cancels {count}: {names}{f' and {unnamed} more' if unnamed > 0 else ''}.")
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            "There is no terminal to ask on; nothing was cancelled.", hint="Agree with --yes."
        )
    if not typer.confirm(f"Cancel {_jobs(len(matching))}?", err=True):
        say("Nothing was cancelled.")
        raise typer.Exit(ExitCode.REFUSED)


def _cancelled(api: ApiClient, targets: Iterable[Target], *, are_named: bool, quiet: bool) -> _Outcome:
    """Cancel job after job; one that is refused does not keep the others.

    An API that is not reached ends it: the error says how far it came, and the same command finishes it.
    """
    outcome = _Outcome()
    for target in targets:
        try:
            document = target.cancel(api)
        except TrainmasterClientError as error:
            if isinstance(error, GatewayRefusedError) or not isinstance(error, _OF_ONE_JOB):
                error.add_note(f"Before that: {_summary(outcome)}")
                raise
            _note_refusal(outcome, target.name, error, are_named=are_named)
        else:
            outcome.cancelled.append(document)
            if not quiet:
                print_lines([_line(document)])
    return outcome


def _note_refusal(outcome: _Outcome, name: str, error: TrainmasterClientError, *, are_named: bool) -> None:
    """Record why a job was not cancelled; one that matched and has ended meanwhile needs no cancel."""
    if isinstance(error, ConflictError) and not are_named:
        outcome.ended.append(name)
        return
    outcome.failed[name] = error
    say("\n".join(_failure(name, error)))


def _failure(name: str, error: TrainmasterClientError) -> Iterator[str]:
    yield f"{name}: {error}"
    yield from getattr(error, "__notes__", ())


def _line(document: Document) -> str:
    if is_array(document):
        return array_view(document).line
    view = job_view(document)
    return f"{view.name}: {place_line(view) if view.is_waiting else view.state}{dependents_note(document)}"


def _summary(outcome: _Outcome) -> str:
    parts = [f"cancelled {_jobs(len(outcome.cancelled))}"]
    if outcome.ended:
        parts.append(f"{len(outcome.ended)} had ended")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed: {', '.join(outcome.failed)}")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def _as_document(outcome: _Outcome) -> Document:
    failed = [{"name": name, "message": str(error)} for name, error in outcome.failed.items()]
    return {"jobs": outcome.cancelled, "ended": outcome.ended, "failed": failed}
