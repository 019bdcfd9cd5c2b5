"""``trainmaster events``: what was decided about jobs, one line per event, and with ``-f`` as it happens."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, NoReturn

import typer

from trainmaster_client.api import Document
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import print_json_line, say
from trainmaster_client.cli.silences import Connection, is_passing
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.event_feed import EventFeed, QueueEvent
from trainmaster_client.jobs.instants import instant
from trainmaster_client.jobs.newer_routes import newer_route

USUAL = timedelta(hours=24)
POLL_SECONDS = 5.0

Show = Callable[[QueueEvent, Document], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilters:
    team: Annotated[str | None, typer.Option(metavar="TEAM", help="Only this team.")] = None
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only this kind, as in 'Job Preempted'.")
    ] = None


@with_options
def events(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new ones.")] = False,
    filters: EventFilters,
    since: Annotated[
        str | None,
        typer.Option(metavar="AGO", help="E.g. 90m, 24h, 7d, or an instant; without it 24h, with -f now."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show what was decided about jobs: ends, preemptions, retries, warnings. One line per event."""
    now = datetime.now(UTC)
    usual = now if follow else now - USUAL
    begin = usual if since is None else instant(since, now=now)
    connection = Connection(lambda: connect(quiet=follow))

    def ask(at: str, token: str | None) -> Document:
        with newer_route(connection.api, "/events"):
            return connection.api.events(since=at, next_token=token, **asdict(filters))

    feed, show = EventFeed(ask, since=begin), _shown_as(as_json=as_json)
    if follow:
        EventWatch(feed=feed, show=show, lost=connection.lost).run()
    if not _show_all(feed, show) and not as_json:
        say("No events in that time.")


def _shown_as(*, as_json: bool) -> Show:
    def show(event: QueueEvent, document: Document) -> None:
        if as_json:
            print_json_line(document)
        else:
            print(event_line(event), flush=True)  # as rich would, at a quarter of its time

    return show


def event_line(event: QueueEvent) -> str:
    """Write the event in one line, whatever its length."""
    parts = [f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}", event.kind, event.team, event.job, event.text]
    return "  ".join(part for part in parts if part)


def _show_all(feed: EventFeed, show: Show) -> bool:
    """Show all new events; return whether there were any."""
    shown = False
    for event, document in feed.new_events():
        show(event, document)
        shown = True
    return shown


@dataclass(slots=True, kw_only=True)
class EventWatch:
    """Asks each ``POLL_SECONDS`` until Ctrl-C, through silences of the API and expired credentials."""

    feed: EventFeed
    show: Show
    lost: Callable[[TrainmasterClientError], None]
    sleep: Callable[[float], None] = time.sleep
    _is_silent: bool = False

    def run(self) -> NoReturn:
        """Show events forever. The first answer must come: its errors are those of ``trainmaster events``."""
        _show_all(self.feed, self.show)
        while True:
            self.sleep(POLL_SECONDS)
            self.look()

    def look(self) -> None:
        try:
            _show_all(self.feed, self.show)
        except TrainmasterClientError as error:
            if not is_passing(error):
                raise
            self.lost(error)
            if not self._is_silent:
                say(f"{error} Still trying; no event is lost.")
            self._is_silent = True
        else:
            self._is_silent = False
