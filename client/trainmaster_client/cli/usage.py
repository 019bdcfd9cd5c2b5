"""``trainmaster usage``: what a team's month was spent on, sums over any time, or advice on Savings Plans."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.commitment_advice import CommitOptions, advise_commitment
from trainmaster_client.cli.commitment_report import print_advice
from trainmaster_client.cli.connection import CommandApi, connect
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError, MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import api_time, instant

_CAUSES = {"warm_pool": "warm pool", "startup": "start-up"}
"""Causes that people write differently; the others are words already."""


ALL_TEAMS = "*"
"""The team that means all teams, for admins."""


class GroupKey(StrEnum):
    TEAM = "team"
    USER = "user"
    JOB = "job"
    DAY = "day"
    MODEL_NAME = "model_name"
    ARRAY = "array"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Sums over a time, in the place of one team's month."""

    group_by: Annotated[
        GroupKey | None, typer.Option("--group-by", help="Sum by this, over --from and --to.")
    ] = None
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="With --group-by or --commit: an instant, or 30d."),
    ] = None
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="With --group-by or --commit: its end; without it now."),
    ] = None
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV; by job without --group-by or --commit.")] = (
        False
    )

    def key(self, team: str | None) -> GroupKey | None:
        """Return what to group by; None shows one team's month."""
        if self.group_by is not None:
            return self.group_by
        if team == ALL_TEAMS:
            return GroupKey.TEAM
        return GroupKey.JOB if self.as_csv else None


@with_options
def usage(
    *,
    team: Annotated[
        str | None,
        typer.Option(metavar="TEAM", help="Required if you are in several teams; '*' for all, with sums."),
    ] = None,
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="UTC; without it this month.")] = None,
    grouping: Grouping,
    commitment: CommitOptions,
    as_json: JsonFlag = False,
) -> None:
    """Show what a team used in a month, what it cost and what was lost to whom; or sums over any time."""
    if commitment.check(team=team, month=month, group_by=grouping.group_by):
        _check_forms(grouping, as_json=as_json)
        advice = advise_commitment(commitment, start=grouping.start, end=grouping.end)
        print_advice(advice, as_json=as_json, as_csv=grouping.as_csv)
        return
    key = grouping.key(team)
    _check(grouping, key, month=month, as_json=as_json)
    if key is not None:
        _print_groups(connect(), key, grouping, team=team, as_json=as_json)
        return
    document = connect().usage(team=team, month=month)
    if as_json:
        print_json(document)
        return
    try:
        lines = list(usage_lines(document))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines(lines)
    print_lines(unused_lines(document))
    print_lines(f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ())


def _check(grouping: Grouping, key: GroupKey | None, *, month: str | None, as_json: bool) -> None:
    """Raises InvalidArgumentError."""
    if key is not None and month is not None:
        raise InvalidArgumentError("--month gives no sums.", hint="For sums use --from and --to.")
    if key is None and (grouping.start or grouping.end):
        raise InvalidArgumentError(
            "--from and --to go with --group-by or --commit.", hint="Or write --month YYYY-MM."
        )
    _check_forms(grouping, as_json=as_json)


def _check_forms(grouping: Grouping, *, as_json: bool) -> None:
    """Raises InvalidArgumentError."""
    if grouping.as_csv and as_json:
        raise InvalidArgumentError("--csv and --json exclude each other.", hint="Write one of them.")


def _print_groups(
    api: CommandApi, key: GroupKey, grouping: Grouping, *, team: str | None, as_json: bool
) -> None:
    now = datetime.now(UTC)
    start, end = (
        None if text is None else api_time(instant(text, now=now, option=option))
        for option, text in (("--from", grouping.start), ("--to", grouping.end))
    )
    if grouping.as_csv:
        sys.stdout.write(api.usage_csv(key.value, team=team, start=start, end=end))
        return
    document = api.usage_by(key.value, team=team, start=start, end=end)
    if as_json:
        print_json(document)
        return
    try:
        lines, table = _group_title(document), _group_table(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines([lines])
    console().print(table)
    print_lines(unused_lines(document))
    if document.get("truncated"):
        print_lines(["More jobs than the API reads at once: the rest of them is in the line -."])


def unused_lines(document: Document) -> Iterator[str]:
    """Say what was paid for training plans and not used; the API tells admins alone."""
    for plan in document.get("unused_plan") or ():
        name = printable(plan["arn"]).rpartition("/")[2]
        hours, usd = plan["instance_hours"], plan["usd"]
        unused = "an unknown part" if hours is None else f"{hours:g} instance-hours"
        money = "" if usd is None else f" ({_usd(usd)})"
        yield f"Training plan {name}: {unused} of {plan['paid_hours']:g} were not used{money}."


def _group_title(document: Document) -> str:
    span = f"{printable(document['from'])} to {printable(document['to'])}"
    return f"{span}: {document['total']['instance_hours']:g} instance-hours, {summary(document)}"


def summary(document: Document) -> str:
    """Say in one sentence what ended attempts cost, what runs has cost so far, and how much was of use."""
    total, running = document["total"], document.get("running") or {}
    text = f"{_at_least(total)} spent"
    if count := running.get("jobs"):
        text += f", {_at_least(running)} so far by {count} running job{'s' if count != 1 else ''}"
    return f"{text}{_useful(total)}"


def _at_least(sums: Document) -> str:
    """Give a sum; where a price is missing, what is known of it."""
    known = sums.get("known_usd") or 0
    return _usd(sums["usd"]) if sums["usd"] is not None else f"at least {_usd(known)}"


def _useful(total: Document) -> str:
    """Give the share that was of use: a range where nobody saw whether work was saved."""
    by, usd = total.get("by") or {}, total["usd"]
    productive, unknown = by.get("productive"), by.get("unknown") or 0
    if not usd or productive is None:
        return ""
    least, most = (round(100 * part / usd) for part in (productive, productive + unknown))
    if least == most:
        return f"; {least} % useful"
    return f"; {least} to {most} % useful (of {_usd(unknown)} no checkpoint was seen)"


def _group_table(document: Document) -> Table:
    """Make the table of groups, the most expensive first, as the API sorts them."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(printable(document["group_by"]).upper(), overflow="fold")
    for heading in ("HOURS", "USD", "SHARE", "USEFUL"):
        table.add_column(heading, no_wrap=True, justify="right")
    total = document["total"]["usd"]
    for group in document.get("groups") or ():
        usd = group["usd"]
        by = group.get("by") or {}
        table.add_row(
            printable(group["key"]) or "-",
            f"{group['instance_hours']:.1f}",
            "?" if usd is None else f"{usd:.2f}",
            _share(usd, total),
            _useful_share(by, usd),
        )
    return table


def _share(part: float | None, whole: float | None) -> str:
    return "-" if part is None or not whole else f"{100 * part / whole:.1f} %"


def _useful_share(by: Document, whole: float | None) -> str:
    productive, unknown = by.get("productive"), by.get("unknown") or 0
    if productive is None or not unknown or not whole:
        return _share(productive, whole)
    return f"{100 * productive / whole:.0f}-{_share(productive + unknown, whole)}"


def usage_lines(document: Document) -> Iterator[str]:
    total = document["total"]
    yield f"Team {printable(document['team'])}, {printable(document['month'])}: {summary(document)}"
    yield f"  ended: {_line(total)}"
    budget = document.get("budget")
    if budget:
        warning = "; 80 % or more is spent" if budget.get("warning") else ""
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
    """Yield the causes one below the other, so that they can be compared; also those that cost nothing."""
    if total["usd"] is None:
        yield f"  of it known: {_usd(total.get('known_usd') or 0)}"
        return
    for cause, amount in (total.get("by") or {}).items():
        share = 100 * amount / total["usd"] if total["usd"] else 0
        yield f"  {_named(cause):<12}{amount:>12.2f} USD{share:>7.1f} %"
    if total.get("saved_usd"):
        yield f"  spot saved {total['saved_usd']:.2f} USD of the on-demand price"
    if total.get("warm_saved_usd"):
        paid = (total.get("by") or {}).get("warm_pool") or 0
        yield f"  warm pools saved {total['warm_saved_usd']:.2f} USD of start-up, and cost {paid:.2f} USD"


def _named(cause: str) -> str:
    return _CAUSES.get(cause, printable(cause))


def _line(amounts: Document) -> str:
    return f"{amounts['instance_hours']:g} instance-hours, {_usd(amounts['usd'])}"


def _parts(job: Document) -> str:
    """Say what the job's cost was spent on; causes without cost are left out."""
    spent = [f"{_named(cause)} {amount:.2f}" for cause, amount in (job.get("by") or {}).items() if amount]
    saved = [f"spot saved {job['saved_usd']:.2f} USD"] if job.get("saved_usd") else []
    if job.get("warm_saved_usd"):
        saved.append(f"warm starts saved {job['warm_saved_usd']:.2f} USD")
    return "; ".join([*([", ".join(spent)] if spent else []), *saved])


def _usd(amount: Any) -> str:  # noqa: ANN401  JSON
    return "cost unknown: a price is missing" if amount is None else f"{amount:.2f} USD"


def _party(taken: Document, role: str) -> str:
    name, team = taken.get(role), printable(taken.get(f"{role}_team"))
    return printable(name) if name else f"a job of team {team}"
