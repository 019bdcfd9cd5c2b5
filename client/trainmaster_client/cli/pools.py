"""``trainmaster pools``: what there is, who uses it, who waits."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError, MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.views.pool_rows import Part, PoolRow, pool_rows

AheadFlag = Annotated[
    bool, typer.Option("--ahead", help="Show all changes by calendars, and reservations, of the next 7 days.")
]
SharingFlag = Annotated[
    bool,
    typer.Option(
        "--sharing", help="Say instead which jobs differ in so little that they could share warm pools."
    ),
]


def pools(*, ahead: AheadFlag = False, sharing: SharingFlag = False, as_json: JsonFlag = False) -> None:
    """Show every pool: capacity, use, quotas of teams, warm pools, limits of the account."""
    if ahead and sharing:
        raise InvalidArgumentError("--ahead and --sharing exclude each other.", hint="Write one of them.")
    document = connect().pools(sharing=sharing)
    if as_json:
        print_json(document)
    elif sharing:
        print_lines(sharing_lines(document.get("pools") or ()))
    else:
        print_lines(pool_lines(pool_rows(document.get("pools") or (), now=datetime.now(UTC)), ahead=ahead))


def pool_lines(rows: Iterable[PoolRow], *, ahead: bool = False) -> Iterator[str]:
    """Yield several lines a pool, those below its name indented.

    Args:
        rows: The pools.
        ahead: Whether all changes and reservations are shown, or the next ones and how many follow.
    """
    pool = None
    for pool in rows:
        yield f"{pool.name}: {pool.waiting}"
        yield from (
            f"  {gauge.capacity}x {gauge.instance_type} {gauge.capacity_type}:"
            f" {gauge.used} used, {gauge.warm} warm, {gauge.free} free"
            for gauge in pool.gauges
        )
        yield from (f"  {plan}" for plan in pool.plans)
        yield from (f"  {change}" for change in (pool.calendar if ahead else pool.calendar[:1]))
        if len(pool.calendar) > 1 and not ahead:
            yield f"  and {len(pool.calendar) - 1} more changes of the calendar in 7 days (--ahead)"
        yield from (
            f"  {reservation}" for reservation in (pool.reservations if ahead else pool.reservations[:1])
        )
        if len(pool.reservations) > 1 and not ahead:
            yield f"  and {len(pool.reservations) - 1} more reservations in 7 days (--ahead)"
        yield from (f"  team {team}" for team in pool.teams)
        yield from (f"  warm: {warm}" for warm in pool.warm)
        yield from (f"  {warning}" for warning in pool.warnings)
    if pool is None:
        yield "No pools: an admin has to apply a policy."


def sharing_lines(pools: Sequence[Part]) -> Iterator[str]:
    """Yield which jobs of each pool could share warm pools, and what to do. Raises MalformedViewError."""
    try:
        advised = [
            (printable(pool["name"]), [(advice["because"], advice["todo"]) for advice in pool["sharing"]])
            for pool in pools
        ]
    except (KeyError, TypeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    for name, advices in advised:
        for because, todo in advices:
            yield f"{name}: {printable(because)}"
            yield f"  {printable(todo)}"
    if any(advices for _, advices in advised):
        yield "Estimates, by the last 16 starts and ends of each kind of jobs, kept warm as the policy says."
    else:
        yield "No jobs that you see would have started sooner by sharing warm pools, as far as is recorded."
