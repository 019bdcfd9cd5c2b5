"""``trainmaster queue``, ``show`` and ``cancel``."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.completion import complete_job
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.job_sheet import sheet
from trainmaster_client.cli.queue_table import print_queue
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.progress import place_line
from trainmaster_client.views import job_view

JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="The job's name, or that of any of its attempts.",
        autocompletion=complete_job,
    ),
]


def queue(
    *,
    state: Annotated[
        str | None, typer.Option(help="Only this state, e.g. running; finished ones too.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only this pool.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page of a long queue.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the queue: running jobs, then waiting ones in their turn. Other teams' jobs have no name."""
    filters = {"state": state, "team": team, "pool": pool}
    api = connect()
    document = _every_page(api, filters) if everything else api.jobs(**filters)
    if as_json:
        print_json(document)
        return
    views = [job_view(job) for job in document.get("jobs") or ()]
    print_queue(views, now=datetime.now(UTC), to=console())
    if document.get("next_token"):
        typer.echo("There is more: --all shows the whole queue.", err=True)


def show(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Show one job: where it stands and why, its attempts, its history."""
    document = connect().job(job)
    if as_json:
        print_json(document)
    else:
        print_lines(sheet(document))


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
