"""``trainmaster repair``: Recount the table from its jobs, and say or write what differs."""

import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines, say
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable

POLL_SECONDS = 5.0
"""The stack works on it once a minute."""


def repair(
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write it; starts must be paused: trainmaster policy pause.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Count counters, teams and queue entries again from the jobs; without --apply only say what differs."""
    api = connect()
    api.start_repair(apply=apply)
    if not as_json:
        say(
            "The stack reads its table, once a minute. Ctrl-C only ends the wait: the same command shows"
            " the result later."
        )
    document = waited_for(api)
    if as_json:
        print_json(document)
        return
    try:
        lines = list(repair_lines(document))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines(lines)


def waited_for(api: ApiClient, *, pause: Callable[[float], None] = time.sleep) -> Document:
    document = api.repair()
    while document.get("state") == "running":
        pause(POLL_SECONDS)
        document = api.repair()
    return document


def repair_lines(document: Document) -> Iterator[str]:
    different, set_aside = document["differences"], document["set_aside"]
    yield f"{document['jobs_read']} jobs read."
    for change in different:
        verb = "was" if document["apply"] else "is"
        stored, computed = _said(change["stored"]), _said(change["computed"])
        yield f"{printable(change['row'])} {_field(change['field'])}{verb} {stored}, by the jobs {computed}"
    if not different:
        yield "Every row agrees with the jobs."
    elif document["apply"]:
        yield "Rebuilt. Continue with: trainmaster policy resume"
    else:
        yield "Nothing was changed. To rebuild: trainmaster policy pause, then trainmaster repair --apply"
    if set_aside:
        yield f"{len(set_aside)} rows cannot be understood and were left as they are:"
    for row in set_aside:
        yield f"  {printable(row['key'])}: {printable(row['error'])}"


def _field(name: str) -> str:
    return "" if name == "*" else f"{printable(name)} "


def _said(content: object) -> str:
    return "missing" if content is None else printable(str(content))
