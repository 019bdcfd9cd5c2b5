"""``trainmaster usage``: what a team's month was spent on."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from trainmaster_client.api import Document
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.printable import printable


def usage(
    *,
    team: Annotated[str | None, typer.Option(help="Needed by whoever is in several teams.")] = None,
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="UTC; without it this month.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a team used in a month, what it cost and what was lost to whom."""
    document = connect().usage(team=team, month=month)
    if as_json:
        print_json(document)
        return
    try:
        lines = list(usage_lines(document))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines(lines)


def usage_lines(document: Document) -> Iterator[str]:
    total = document["total"]
    yield f"Team {printable(document['team'])}, {printable(document['month'])}: {_line(total)}"
    budget = document.get("budget")
    if budget:
        warning = "; 80 % or more are spent" if budget.get("warning") else ""
        yield (
            f"  budget: {_usd(budget['limit'])}, of it {_usd(budget['spent'])} spent and"
            f" {_usd(budget['reserved'])} reserved for what runs{warning}"
        )
    yield from (f"  {printable(job['name'])}: {_line(job)}" for job in document.get("jobs") or ())
    for taken in document.get("preemptions") or ():
        yield (
            f"  {printable(taken['at'])} {_party(taken, 'preemptor')} took room from"
            f" {_party(taken, 'victim')}: {taken['instance_hours_lost']:g} instance-hours lost"
        )


def _line(one: Document) -> str:
    spent = [f"{printable(cause)} {amount:.2f}" for cause, amount in (one.get("by") or {}).items() if amount]
    shares = f" ({', '.join(spent)})" if spent else ""
    saved = f"; spot saved {one['saved_usd']:.2f} USD" if one.get("saved_usd") else ""
    return f"{one['instance_hours']:g} instance-hours, {_usd(one['usd'])}{shares}{saved}"


def _usd(amount: Any) -> str:  # noqa: ANN401  JSON
    return "cost unknown: a price is missing" if amount is None else f"{amount:.2f} USD"


def _party(taken: Document, role: str) -> str:
    name, team = taken.get(role), printable(taken.get(f"{role}_team"))
    return printable(name) if name else f"a job of team {team}"
