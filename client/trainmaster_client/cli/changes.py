"""``trainmaster priority``, ``hold`` and ``release``."""

from typing import Annotated

import typer

from trainmaster_client.api import Document
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.progress import place_line

HIGHEST_PRIORITY = 1000


def priority(
    job: JobName,
    number: Annotated[
        int, typer.Argument(min=0, max=HIGHEST_PRIORITY, metavar="N", help="The higher, the earlier.")
    ],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Give a job another priority, wherever it is: it moves in the queue, or is harder to preempt."""
    document = connect().change(job, priority=number)
    _print(document, f"priority {number}", as_json=as_json)


def hold(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Take a waiting job out of its turn until it is released; it keeps its age."""
    _print(connect().change(job, held=True), "", as_json=as_json)


def release(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Put a held job back into its turn."""
    _print(connect().change(job, held=False), "", as_json=as_json)


def _print(document: Document, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    view = job_view(document)
    standing = place_line(view) if view.is_waiting else view.state
    print_lines([f"{view.name}: {', '.join(part for part in (said, standing) if part)}"])
