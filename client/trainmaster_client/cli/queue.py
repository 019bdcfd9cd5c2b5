"""``trainmaster queue``: the queue as a table, CSV or JSON, once or again and again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient, Document, etag_of
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.known_names import (
    complete_pool,
    complete_state,
    complete_team,
    nearest,
    pool_names,
    require_state,
    team_names,
)
from trainmaster_client.cli.queue_csv import print_queue_csv
from trainmaster_client.cli.queue_table import queue_picture
from trainmaster_client.cli.queue_view import QueueView
from trainmaster_client.cli.queue_watch import MORE, QueueWatch
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_whole, say
from trainmaster_client.errors import InvalidArgumentError, InvalidRequestError, TrainmasterClientError
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.start_estimates import StartEstimates, start_estimates

USUAL_SECONDS = 5.0
SHORTEST_SECONDS = 1.0
"""The API is asked no more often, whoever watches."""
ESTIMATES_SECONDS = 60.0
"""Likely starts cost the API a second of CPU, so a watch asks for them no more often."""


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
    view = looks.look()
    if form.is_json:
        print_json(view.document)
        return
    if form.output is OutputForm.CSV:
        print_queue_csv(view.rows(now=datetime.now(UTC)))
    else:
        _print_table(view, form, now=datetime.now(UTC))
    if view.has_more:
        say(MORE)


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


def _print_table(view: QueueView, form: QueueForm, *, now: datetime) -> None:
    to = console(wide=form.wide)
    for line in view.heading_lines(now=now, width=to.width):
        print_whole(line, to=to)
    rows = view.rows(now=now)
    if rows:
        print_whole(queue_picture(rows, to=to, has_starts=view.starts is not None), to=to)
    else:
        print_whole(view.empty_line, to=to)


class QueueLooks:
    """Looks at the queue; pools and likely starts are missing where they are not to be had.

    Args: ``monotonic`` in seconds.
    """

    def __init__(
        self,
        api: ApiClient,
        filters: QueueFilters,
        *,
        everything: bool,
        form: QueueForm,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._filters = filters
        self._everything = everything
        self._form = form
        self._monotonic = monotonic
        self._starts: StartEstimates | None = None
        self._starts_at: float | None = None
        self._page: Document | None = None
        """Page of the last look; while it does not change, a look costs a 304."""

    def look(self) -> QueueView:
        document = self._jobs()
        is_whole = self._filters == QueueFilters()
        if self._form.is_json:
            return QueueView(document=document, is_whole=is_whole)
        is_empty = not document.get("jobs")
        pools = self._pools() if is_empty or self._form.output is OutputForm.TABLE else ()
        if is_empty:
            self._check_names(pools)
        wanted = [pool for pool in pools if self._filters.pool in {None, pool.get("name")}]
        return QueueView(document=document, pools=wanted, starts=self._estimates(document), is_whole=is_whole)

    def _jobs(self) -> Document:
        parameters = self._filters.asked
        try:
            return every_page(self._api, parameters) if self._everything else self._first_page(parameters)
        except InvalidRequestError as error:
            self._add_notes(error)
            raise

    def _first_page(self, parameters: dict[str, str | None]) -> Document:
        known, etag = self._page, etag_of(self._page)
        page = self._api.jobs_unless(etag, **parameters) if known and etag else self._api.jobs(**parameters)
        self._page = known if page is None else page
        assert self._page is not None
        return self._page

    def _add_notes(self, error: InvalidRequestError) -> None:
        """Add the nearest names to the error, or that the stack is too old for the question."""
        if any(problem.field == "query.mine" for problem in error.problem.errors):
            error.add_note("The deployed stack is older than --mine.")
            return
        pools = self._pools()
        for value, known in (
            (self._filters.pool, pool_names(pools)),
            (self._filters.team, team_names(pools)),
        ):
            if value is None or value in known or not (near := nearest(value, known)):
                continue
            if f"did you mean {near}" not in str(error):  # the API may have said so itself
                error.add_note(f"Did you mean {near}?")

    def _pools(self) -> Sequence[dict[str, Any]]:
        try:
            pools = self._api.pools().get("pools")
        except TrainmasterClientError:
            return ()
        return [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else ()

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

    def _estimates(self, document: Document) -> StartEstimates | None:
        now = self._monotonic()
        if self._starts_at is None or now - self._starts_at >= ESTIMATES_SECONDS:
            jobs = [job_view(document_of_job) for document_of_job in document.get("jobs") or ()]
            self._starts, self._starts_at = start_estimates(self._api, jobs), now
        return self._starts


def every_page(api: ApiClient, filters: dict[str, str | None]) -> Document:
    """Read all pages as one answer of the same shape."""
    jobs: list[Any] = []
    token: str | None = None
    while True:
        page = api.jobs(**filters, limit=LARGEST_PAGE, next_token=token)
        jobs += page.get("jobs") or ()
        token = page.get("next_token")
        if not token:
            return {"jobs": jobs, "next_token": None}
