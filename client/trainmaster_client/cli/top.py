"""``trainmaster top``: the queue on a whole terminal, with keys."""

import importlib.util
import sys
from functools import partial
from typing import Annotated

import typer

from trainmaster_client.cli.connection import aws_client, connect
from trainmaster_client.cli.queue import SHORTEST_SECONDS, USUAL_SECONDS
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.errors.missing_packages import install_hint


def top(
    seconds: Annotated[
        float,
        typer.Argument(metavar="SECONDS", min=SHORTEST_SECONDS, help="Seconds between refreshes."),
    ] = USUAL_SECONDS,
    *,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let keys cancel, hold and re-prioritise jobs.")
    ] = False,
) -> None:
    """Watch the queue, pools and logs on a whole terminal. ? shows the keys, q quits."""
    if importlib.util.find_spec("textual") is None:
        raise InvalidArgumentError(
            "trainmaster top needs a package that is not installed: textual.",
            hint=install_hint("top"),
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidArgumentError(
            "trainmaster top needs a terminal.", hint="Into a pipe goes: trainmaster queue --watch"
        )
    from trainmaster_client.cli.full_screen.job_changes import TopOptions  # noqa: PLC0415  needs the extra
    from trainmaster_client.cli.full_screen.queue_app import QueueApp  # noqa: PLC0415

    connection = Connection(lambda: connect(quiet=True))
    connection.api.pools()  # what is wrong from the beginning is said as by any command
    logs = partial(aws_client, "logs")
    QueueApp(connection, TopOptions(logs_client=logs, seconds=seconds, may_change=allow_changes)).run()
