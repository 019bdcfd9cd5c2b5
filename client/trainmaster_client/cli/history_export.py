"""``trainmaster history-export``: the jobs of a period with their attempts, as lines of JSON."""

import gzip
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer

from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.jobs.instants import instant


def history_export(
    *,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Begin of the period: 30d, 12h, an instant.")
    ] = "30d",
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Where it ends; without it now.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write there; compressed if it ends with .gz."),
    ] = None,
) -> None:
    """Print the jobs of a period with their attempts, a line of JSON each; for admins."""
    # 0.2 s, for few commands
    from trainmaster_client.simulate.sources.account_export import Period, export_pages  # noqa: PLC0415

    now = datetime.now(UTC)
    until = now if end is None else instant(end, now=now, option="--to")
    period = Period(since=instant(start, now=now, option="--from"), until=until)
    count = 0
    with _opened(output) as stream:
        for page in export_pages(connect(), period, pause=time.sleep):
            stream.write(page)
            count += page.count("\n")
            if output is not None and sys.stderr.isatty():
                print(f"\r{count:,} lines", end="\r", file=sys.stderr, flush=True)
    say(f"{count:,} lines of {period}.")


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    """Open a file for writing; it gets its name only once it is whole."""
    if path is None:
        yield sys.stdout
        return
    part = path.with_name(f"{path.name}.part")
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(part, "wt", encoding="utf-8", newline="") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be written: {error.strerror or error}.", hint="Name a file in a folder of yours."
        ) from error
