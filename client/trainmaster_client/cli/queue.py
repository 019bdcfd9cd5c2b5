"""``trainmaster queue``: the queue as a table, CSV or JSON, once or again and again."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.known_names import (
    complete_pool,
    complete_state,
    complete_team,
    nearest,
    pool_names,
    require_state,
    team_names,
)
from trainmaster_client.cli.queue_table import print_queue_csv, queue_picture, summary_lines
from trainmaster_client.cli.queue_watch import QueueWatch
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_whole, say
from trainmaster_client.errors import InvalidArgumentError, InvalidRequestError
from trainmaster_client.jobs.queue_reader import QueueReader
from trainmaster_client.views.queue_model import QueueAnswers, QueueModel, queue_model

USUAL_SECONDS = 5.0
SHORTEST_SECONDS = 1.0
"""The API is asked no more often, whoever watches."""


class OutputForm(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilters:
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="Only this state, e.g. running; finished ones too.",
            autocompletion=complete_state,
        ),
    ] = None
    team: Annotated[
        str | None, typer.Option(metavar="TEAM", help="Only this team.", autocompletion=complete_team)
    ] = None
    pool: Annotated[
        str | None, typer.Option(metavar="POOL", help="Only this pool.", autocompletion=complete_pool)
    ] = None
    mine: Annotated[bool, typer.Option("--mine", help="Only jobs that you submitted.")] = False

    @property
    def asked(self) -> dict[str, str | None]:
        """Return the filters as parameters of the API."""
        return {**asdict(self), "mine": "true" if self.mine else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueForm:
    output: Annotated[
        OutputForm, typer.Option("--output", "-o", help="A table, CSV, or JSON as with --json.")
    ] = OutputForm.TABLE
    wide: Annotated[
        bool, typer.Option("--wide", help="Every column, nothing shortened, however narrow the screen.")
    ] = False
    as_json: JsonFlag = False

    @property
    def is_json(self) -> bool:
        return self.as_json or self.output is OutputForm.JSON


@with_options
def queue(
    seconds: Annotated[
        float | None,
        typer.Argument(
            metavar="SECONDS",
            min=SHORTEST_SECONDS,
            help=f"Seconds between refreshes with --watch (default {USUAL_SECONDS:g}).",
            show_default=False,
        ),
    ] = None,
    *,
    filters: QueueFilters,
    form: QueueForm,
    everything: Annotated[bool, typer.Option("--all", help="Every page of a long queue.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
) -> None:
    """Show the queue: running jobs, then waiting ones in queue order. Other teams' jobs have no name."""
    _check(seconds, filters, form, watch=watch)
    looks = QueueLooks(connect(quiet=watch), filters, everything=everything, form=form)
    if watch:
        every = seconds or USUAL_SECONDS
        QueueWatch(look=looks.look, seconds=every, to=console(), as_json=form.is_json).run()
    answers = looks.look()
    if form.is_json:
        print_json(answers.document)
        return
    if form.output is OutputForm.CSV:  # a row a job, of arrays the tasks that exist as jobs
        answers = replace(answers, document={**answers.document, "arrays": ()})
    model = queue_model(answers, now=datetime.now(UTC))
    if form.output is OutputForm.CSV:
        print_queue_csv(model)
    else:
        _print_table(model, form)
    if model.further:
        say(model.further)


def _check(seconds: float | None, filters: QueueFilters, form: QueueForm, *, watch: bool) -> None:
    """Raises InvalidArgumentError."""
    if seconds is not None and not watch:
        raise InvalidArgumentError(
            "A number of seconds goes with --watch.", hint="Write --watch, or leave it out."
        )
    if form.output is OutputForm.CSV and (watch or form.as_json):
        raise InvalidArgumentError(
            "-o csv prints once, and nothing else.", hint="Leave out --watch and --json."
        )
    if watch and form.wide:
        raise InvalidArgumentError("--wide is for a queue that is printed once.", hint="Leave out --watch.")
    require_state(filters.state)


def _print_table(model: QueueModel, form: QueueForm) -> None:
    to = console(wide=form.wide)
    summaries = summary_lines(model, to.width)
    for line in [*summaries, *([Text()] if summaries else [])]:
        print_whole(line, to=to)
    print_whole(queue_picture(model, to=to), to=to)


class QueueLooks:
    """Looks at the queue; pools and likely starts are missing where they are not to be had."""

    def __init__(self, api: ApiClient, filters: QueueFilters, *, everything: bool, form: QueueForm) -> None:
        self._reader = QueueReader(lambda: api)
        self._filters = filters
        self._everything = everything
        self._form = form

    def look(self) -> QueueAnswers:
        answers = QueueAnswers(document=self._jobs(), is_filtered=self._filters != QueueFilters())
        if self._form.is_json:
            return answers
        is_empty = not (answers.document.get("jobs") or answers.document.get("arrays"))
        pools = self._reader.pools() if is_empty or self._form.output is OutputForm.TABLE else ()
        if is_empty:
            self._check_names(pools)
        wanted = [pool for pool in pools if self._filters.pool in {None, pool.get("name")}]
        return replace(answers, pools=wanted, starts=self._reader.starts(answers.jobs))

    def _jobs(self) -> Document:
        read = self._reader.whole if self._everything else self._reader.first_page
        try:
            return read(self._filters.asked)
        except InvalidRequestError as error:
            self._add_notes(error)
            raise

    def _add_notes(self, error: InvalidRequestError) -> None:
        """Add the nearest names to the error, or that the stack is too old for the question."""
        if any(problem.field == "query.mine" for problem in error.problem.errors):
            error.add_note("The deployed stack is older than --mine.")
            return
        pools = self._reader.pools()
        for value, known in (
            (self._filters.pool, pool_names(pools)),
            (self._filters.team, team_names(pools)),
        ):
            if value is None or value in known or not (near := nearest(value, known)):
                continue
            if f"did you mean {near}" not in str(error):  # the API may have said so itself
                error.add_note(f"Did you mean {near}?")

    def _check_names(self, pools: Sequence[dict[str, Any]]) -> None:
        """Refuse unknown names, which an older stack answers with an empty list.

        Raises InvalidArgumentError for an unknown pool; a likely mistyped team is only pointed out.
        """
        known, pool, team = pool_names(pools), self._filters.pool, self._filters.team
        if pool is not None and known and pool not in known:
            near = nearest(pool, known)
            hint = f"did you mean {near}?" if near else "trainmaster pools shows which there are."
            raise InvalidArgumentError(f"--pool: {pool!r} is not a pool;", hint=hint)
        teams = team_names(pools)
        if team is not None and team not in teams and (near := nearest(team, teams)):
            say(f"No team {team!r} uses a pool. Did you mean {near}?")
