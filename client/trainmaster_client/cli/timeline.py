"""``trainmaster timeline``: which job had which instance when, as a picture of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.cli.timeline_chart import Window, chart_lines
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import api_time, instant
from trainmaster_client.jobs.newer_routes import newer_route
from trainmaster_client.jobs.timelines import timeline as timeline_view

USUAL = timedelta(hours=24)
PIPE_COLUMNS = 120
"""Columns of a picture that goes into a file: it needs a width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """A time; without anything the last 24 hours."""

    since: Annotated[
        str | None, typer.Option(metavar="AGO", help="From then until now: e.g. 90m, 24h, 7d, or an instant.")
    ] = None
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Where it begins: an instant, or e.g. 7d.")
    ] = None
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Where it ends; without it now.")
    ] = None

    def bounds(self, *, now: datetime) -> tuple[datetime, datetime]:
        """Raises InvalidArgumentError."""
        if self.since is not None and (self.start is not None or self.end is not None):
            raise InvalidArgumentError(
                "--since goes without --from and --to.", hint="Write --since 24h, or --from and --to."
            )
        begin = self.start if self.since is None else self.since
        option = "--from" if self.since is None else "--since"
        until = now if self.end is None else instant(self.end, now=now, option="--to")
        since = until - USUAL if begin is None else instant(begin, now=now, option=option)
        if since >= until:
            raise InvalidArgumentError(
                f"{option} is not before {'now' if self.end is None else '--to'}.",
                hint="Give an earlier one.",
            )
        return since, until


@with_options
def timeline(
    *,
    pool: Annotated[str | None, typer.Option(metavar="POOL", help="Only this pool.")] = None,
    span: TimeSpan,
    as_json: JsonFlag = False,
) -> None:
    """Show which job had which instance when: attempts, preemptions, start-up, warm instances."""
    now = datetime.now(UTC)
    since, until = span.bounds(now=now)
    api = connect()
    with newer_route(api, "/timeline"):
        document = api.timeline(pool=pool, start=api_time(since), end=api_time(until))
    if as_json:
        print_json(document)
        return
    screen = console()
    width = screen.width if screen.is_terminal or screen.width < PIPE_COLUMNS else PIPE_COLUMNS
    window = Window(since=since, until=until, now=now, width=width)
    print_lines(chart_lines(timeline_view(document), window), to=screen)
    print_lines(ahead_lines(document.get("ahead") or ()), to=screen)


def ahead_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what calendars, reservations and plans are going to change, a line each; none if nothing."""
    if changes:
        yield "Ahead, in the next 7 days:"
    for change in changes:
        at = datetime.fromisoformat(str(change["at"]))
        kept = [
            f"{_counts(instances)} for team {printable(team)} alone"
            for team, instances in (change.get("reserved") or {}).items()
        ]
        plans = change.get("plan_capacity")
        on_plans = [] if plans is None else [f"on plans {_counts(plans)}"]
        there = "; ".join([_counts(change.get("capacity") or {}), *on_plans, *kept])
        yield f"  {printable(change.get('pool'))}, from {at:%Y-%m-%d %H:%M} UTC on {there}"


def _counts(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count}x {printable(name)}" for name, count in counts.items()) or "nothing"
