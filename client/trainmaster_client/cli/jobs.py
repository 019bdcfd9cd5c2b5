"""``trainmaster queue``, ``show`` and ``cancel``."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.completion import complete_job
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.job_sheet import sheet
from trainmaster_client.cli.queue_table import print_queue
from trainmaster_client.cli.queue_watch import SHORTEST_SECONDS, USUAL_SECONDS, QueueWatch
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines, say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.progress import place_line

JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="The job's name, or that of any of its attempts.",
        autocompletion=complete_job,
    ),
]


def queue(  # noqa: PLR0913  one a filter, and how to watch
    seconds: Annotated[
        float | None,
        typer.Argument(
            min=SHORTEST_SECONDS,
            help=f"With --watch: each so many; else {USUAL_SECONDS:g}.",
            show_default=False,
        ),
    ] = None,
    *,
    state: Annotated[
        str | None, typer.Option(help="Only this state, e.g. running; finished ones too.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only this pool.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page of a long queue.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the queue: running jobs, then waiting ones in their turn. Other teams' jobs have no name."""
    filters = {"state": state, "team": team, "pool": pool}
    if seconds is not None and not watch:
        raise InvalidArgumentError(
            "A number of seconds goes with --watch.", hint="Write --watch, or leave it out."
        )
    api = connect(quiet=watch)

    def look() -> Document:
        return _every_page(api, filters) if everything else api.jobs(**filters)

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


def show(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Show one job: where it stands and why, its attempts, its history."""
    document = connect().job(job)
    if as_json:
        print_json(document)
    else:
        print_lines(sheet(document, now=datetime.now(UTC)))


def cancel(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Take a job out of the queue, or stop it if it runs. It does not come back."""
    document = connect().cancel(job)
    if as_json:
        print_json(document)
        return
    view = job_view(document)
    print_lines([f"{view.name}: {place_line(view) if view.is_waiting else view.state}"])


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
