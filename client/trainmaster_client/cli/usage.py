"""``trainmaster usage``: what a team's month was spent on."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable

_CAUSES = {"warm_pool": "warm pool", "startup": "start-up"}
"""As people write them; the others are words already."""


def usage(
    *,
    team: Annotated[str | None, typer.Option(help="Required if you are in several teams.")] = None,
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
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


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
    yield from _cause_lines(total)
    for job in document.get("jobs") or ():
        yield f"  {printable(job['name'])}: {_line(job)}"
        if parts := _parts(job):
            yield f"    {parts}"
    for taken in document.get("preemptions") or ():
        yield (
            f"  {printable(taken['at'])} {_party(taken, 'preemptor')} preempted"
            f" {_party(taken, 'victim')}: {taken['instance_hours_lost']:g} instance-hours lost"
        )


def _cause_lines(total: Document) -> Iterator[str]:
    """One below the other, so that they can be compared; those that cost nothing too."""
    if total["usd"] is None:
        yield f"  of it known: {_usd(total.get('known_usd') or 0)}"
        return
    for cause, amount in (total.get("by") or {}).items():
        share = 100 * amount / total["usd"] if total["usd"] else 0
        yield f"  {_named(cause):<12}{amount:>12.2f} USD{share:>7.1f} %"
    if total.get("saved_usd"):
        yield f"  spot saved {total['saved_usd']:.2f} USD of what the same had cost on demand"


def _named(cause: str) -> str:
    return _CAUSES.get(cause, printable(cause))


def _line(one: Document) -> str:
    return f"{one['instance_hours']:g} instance-hours, {_usd(one['usd'])}"


def _parts(job: Document) -> str:
    """What it was spent on, without what it was not."""
    spent = [f"{_named(cause)} {amount:.2f}" for cause, amount in (job.get("by") or {}).items() if amount]
    saved = [f"spot saved {job['saved_usd']:.2f} USD"] if job.get("saved_usd") else []
    return "; ".join([*([", ".join(spent)] if spent else []), *saved])


def _usd(amount: Any) -> str:  # noqa: ANN401  JSON
    return "cost unknown: a price is missing" if amount is None else f"{amount:.2f} USD"


def _party(taken: Document, role: str) -> str:
    name, team = taken.get(role), printable(taken.get(f"{role}_team"))
    return printable(name) if name else f"a job of team {team}"
