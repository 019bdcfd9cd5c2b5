"""``trainmaster history``: what became of one job step by step, or of the team's jobs that are over."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient
from trainmaster_client.cli.completion import complete_job
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.finished_jobs import FinishedJob, finished_job, print_finished
from trainmaster_client.cli.instants import instant
from trainmaster_client.cli.past import past_lines
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.job_views import FINAL_STATES

MOST_PAGES = 20
"""Of each state; other teams' jobs are among them, without a name."""
SHOWN = 50

JobNameOrNone = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="Without it: the jobs that are over.", autocompletion=complete_job),
]


def history(
    job: JobNameOrNone = None,
    *,
    state: Annotated[str | None, typer.Option(help="Only completed, failed or stopped ones.")] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="AGO", help="Ended since: 90m, 12h, 7d, an instant.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help=f"More than the newest {SHOWN}.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show each step of a job with how long it took and why, or jobs that are over, the newest first."""
    now = datetime.now(UTC)
    after = instant(since, now=now) if since else None
    if job is None:
        _show_finished(state, team, after, everything=everything, as_json=as_json)
        return
    if state or team or since or everything:
        raise InvalidArgumentError(
            "The options of history are for jobs that are over.", hint="Leave out JOB, or them."
        )
    document = connect().job(job, estimate=False)
    if as_json:
        print_json(document)
    else:
        print_lines(past_lines(document, now=now))


def _show_finished(
    state: str | None, team: str | None, after: datetime | None, *, everything: bool, as_json: bool
) -> None:
    if state is not None and state not in FINAL_STATES:
        raise InvalidArgumentError(
            f"--state: {state!r} is no state of jobs that are over.",
            hint=f"There are {', '.join(sorted(FINAL_STATES))}.",
        )
    found, is_whole = _finished(connect(), [state] if state else sorted(FINAL_STATES), team)
    recent = [one for one in found if after is None or one.ended_at >= after]
    recent.sort(key=lambda one: (one.ended_at, one.name), reverse=True)
    shown = recent if everything else recent[:SHOWN]
    if as_json:
        print_json({"jobs": [one.document for one in shown], "next_token": None})
    else:
        print_finished(shown, to=console())
    if len(shown) < len(recent):
        say(f"{len(recent) - len(shown)} more: --all shows them.")
    if not is_whole:
        say("There are more than were looked at: --team or --state narrows it.")


def _finished(api: ApiClient, states: list[str], team: str | None) -> tuple[list[FinishedJob], bool]:
    """Those with a name, and whether that is all of them."""
    jobs: list[Any] = []
    is_whole = True
    for state in states:
        token: str | None = None
        for _ in range(MOST_PAGES):
            page = api.jobs(state=state, team=team, limit=LARGEST_PAGE, next_token=token)
            jobs += page.get("jobs") or ()
            token = page.get("next_token")
            if not token:
                break
        is_whole = is_whole and not token
    return [finished_job(one) for one in jobs if one.get("name")], is_whole
