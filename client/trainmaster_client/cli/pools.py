"""``trainmaster pools``: what there is, who uses it, who waits."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.views.pool_rows import PoolRow, pool_rows

AheadFlag = Annotated[
    bool, typer.Option("--ahead", help="Show all changes by calendars, and reservations, of the next 7 days.")
]


def pools(*, ahead: AheadFlag = False, as_json: JsonFlag = False) -> None:
    """Show every pool: capacity, use, quotas of teams, warm pools, limits of the account."""
    document = connect().pools()
    if as_json:
        print_json(document)
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
