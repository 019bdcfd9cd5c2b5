"""``trainmaster violations``: what bypassed the queue, and what rules found."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    yield from _sums(document, records)
    for record in records:
        way = "bypassed the queue" if record["unmanaged"] else "came through the queue"
        yield (
            f"{printable(record['at'])} {printable(record['training_job_name'])} of team"
            f" {printable(record['team'])} {way}: {printable(record['outcome'])}"
        )
        yield f"  role: {printable(record['role_arn'])}"
        for violation in record.get("violations") or ():
            rule, field = printable(violation["rule"]), printable(violation["field"])
            audited = " (audited)" if violation["mode"] == "audit" else ""
            message, hint = printable(violation["message"]), printable(violation["hint"])
            yield f"  {rule}{audited}: {field}: {message}; {hint}"


def _sums(document: Document, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the number of jobs of each kind, then a line a rule, the most frequent first."""
    if not records:
        return
    bypassed = sum(bool(record["unmanaged"]) for record in records)
    shown = " on this page" if document.get("next_token") else ""
    yield (
        f"{printable(document['month'])}{shown}: {_jobs(len(records))},"
        f" {bypassed} bypassed the queue, {len(records) - bypassed} came through it"
    )
    kinds = (
        (violation["rule"], violation["mode"] == "audit")
        for record in records
        for violation in record.get("violations") or ()
    )
    rules = Counter(kinds)
    width = max((len(str(count)) for count in rules.values()), default=0)
    for (rule, is_audited), count in sorted(rules.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"  {count:>{width}}  {printable(rule)}{' (audited)' if is_audited else ''}"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _every_page(api: ApiClient, month: str | None) -> Document:
    """Read all pages as one answer of the same shape."""
    records: list[Any] = []
    token: str | None = None
    while True:
        page = api.violations(month=month, next_token=token)
        records += page.get("violations") or ()
        token = page.get("next_token")
        if not token:
            return {**page, "violations": records}
