"""``trainmaster violations``: what bypassed the queue, and what rules found."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines, say
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable


def violations(
    *,
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="UTC; without it this month.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page of a long month.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show training jobs that bypassed the queue and jobs that break rules, the newest last."""
    api = connect()
    document = _every_page(api, month) if everything else api.violations(month=month)
    if as_json:
        print_json(document)
        return
    try:
        lines = list(violation_lines(document))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines(lines)
    if document.get("next_token"):
        say("There is more: --all shows the whole month.")


def violation_lines(document: Document) -> Iterator[str]:
    records = document.get("violations") or ()
    if not records:
        yield f"Nothing in {printable(document['month'])}."
    for record in records:
        way = "bypassed the queue" if record["unmanaged"] else "came through the queue"
        yield (
            f"{printable(record['at'])} {printable(record['training_job_name'])} of team"
            f" {printable(record['team'])} {way}: {printable(record['outcome'])}"
        )
        yield f"  role: {printable(record['role_arn'])}"
        for one in record.get("violations") or ():
            rule, field = printable(one["rule"]), printable(one["field"])
            audited = " (audited)" if one["mode"] == "audit" else ""
            yield f"  {rule}{audited}: {field}: {printable(one['message'])}; {printable(one['hint'])}"


def _every_page(api: ApiClient, month: str | None) -> Document:
    """The pages as one answer of the same shape."""
    records: list[Any] = []
    token: str | None = None
    while True:
        page = api.violations(month=month, next_token=token)
        records += page.get("violations") or ()
        token = page.get("next_token")
        if not token:
            return {**page, "violations": records}
