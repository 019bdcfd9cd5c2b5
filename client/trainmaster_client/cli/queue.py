"""``trainmaster queue``: the queue once, or with ``--watch`` again and again, through silences of the API."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.instants import length
from trainmaster_client.cli.queue_table import print_queue, queue_picture
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_json_line, say
from trainmaster_client.errors import (
    ApiFailedError,
    ApiUnreachableError,
    InvalidArgumentError,
    TooManyRequestsError,
)
from trainmaster_client.jobs.job_views import job_view

USUAL_SECONDS = 5.0
SHORTEST_SECONDS = 1.0
"""The API is asked no more often, whoever watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilters:
    state: Annotated[str | None, typer.Option(help="Only this state, e.g. running; finished ones too.")] = (
        None
    )
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None
    pool: Annotated[str | None, typer.Option(help="Only this pool.")] = None


@with_options
def queue(
    seconds: Annotated[
        float | None,
        typer.Argument(
            min=SHORTEST_SECONDS,
            help=f"Seconds between refreshes with --watch (default {USUAL_SECONDS:g}).",
            show_default=False,
        ),
    ] = None,
    *,
    filters: QueueFilters,
    everything: Annotated[bool, typer.Option("--all", help="Every page of a long queue.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the queue: running jobs, then waiting ones in queue order. Other teams' jobs have no name."""
    if seconds is not None and not watch:
        raise InvalidArgumentError(
            "A number of seconds goes with --watch.", hint="Write --watch, or leave it out."
        )
    api = connect(quiet=watch)

    def look() -> Document:
        return _every_page(api, asdict(filters)) if everything else api.jobs(**asdict(filters))

    if watch:
        QueueWatch(look=look, seconds=seconds or USUAL_SECONDS, to=console(), as_json=as_json).run()
    document = look()
    if as_json:
        print_json(document)
        return
    views = [job_view(job) for job in document.get("jobs") or ()]
    print_queue(views, now=datetime.now(UTC), to=console())
    if document.get("next_token"):
        say("There is more: --all shows the whole queue.")


def _every_page(api: ApiClient, filters: dict[str, str | None]) -> Document:
    """The pages as one answer of the same shape."""
    jobs: list[Any] = []
    token: str | None = None
    while True:
        page = api.jobs(**filters, limit=LARGEST_PAGE, next_token=token)
        jobs += page.get("jobs") or ()
        token = page.get("next_token")
        if not token:
            return {"jobs": jobs, "next_token": None}


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class QueueWatch:
    """Looks each ``seconds`` until Ctrl-C. A terminal is painted over; a pipe gets one picture a look."""

    look: Callable[[], Document]
    seconds: float
    to: Console
    as_json: bool
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = _now
    _seen: Document = field(default_factory=dict)
    _silent_since: datetime | None = None
    _silence: str = ""

    def run(self) -> NoReturn:
        """The first look must succeed: its errors are those of ``trainmaster queue``."""
        self._seen = self.look()
        if self.as_json or not self.to.is_terminal or self.to.is_dumb_terminal:
            self._print_each()
        with Live(self._picture(), console=self.to, auto_refresh=False) as live:
            while True:
                self._look_again()
                live.update(self._picture(), refresh=True)

    def _print_each(self) -> NoReturn:
        while True:
            if not self.as_json:
                self.to.print(self._picture())
            elif self._silent_since is None:
                print_json_line(self._seen)
            self._look_again()

    def _look_again(self) -> None:
        self.sleep(self.seconds)
        try:
            self._seen = self.look()
        except (ApiUnreachableError, ApiFailedError, TooManyRequestsError) as error:
            self._silent_since = self._silent_since or self.now()
            self._silence = str(error)
        else:
            self._silent_since = None

    def _picture(self) -> RenderableType:
        now = self.now()
        jobs = [job_view(one) for one in self._seen.get("jobs") or ()]
        more = [Text("There is more: --all shows the whole queue.")] if self._seen.get("next_token") else []
        return Group(self._title(now), queue_picture(jobs, now=now, to=self.to), *more)

    def _title(self, now: datetime) -> Text:
        clock = f"{now.astimezone():%H:%M:%S}"
        if self._silent_since is None:
            return Text(f"{clock}  every {self.seconds:g} s, Ctrl-C to quit", style="dim")
        since = f"{self._silent_since.astimezone():%H:%M:%S}"
        silent = f"{clock}  nothing new since {since} ({length(now - self._silent_since)}): {self._silence}"
        return Text(silent, style="yellow")
