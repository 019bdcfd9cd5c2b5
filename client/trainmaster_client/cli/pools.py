"""``trainmaster pools``: what there is, who uses it, who waits."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.views.pool_rows import PoolRow, pool_rows


def pools(*, as_json: JsonFlag = False) -> None:
    """Show every pool: capacity, use, quotas of teams, warm pools, limits of the account."""
    document = connect().pools()
    if as_json:
        print_json(document)
    else:
        print_lines(pool_lines(pool_rows(document.get("pools") or (), now=datetime.now(UTC))))


def pool_lines(rows: Iterable[PoolRow]) -> Iterator[str]:
    """Yield several lines a pool, those below its name indented."""
    pool = None
    for pool in rows:
        yield f"{pool.name}: {pool.waiting}"
        yield from (
            f"  {gauge.capacity}x {gauge.instance_type} {gauge.capacity_type}:"
            f" {gauge.used} used, {gauge.warm} warm, {gauge.free} free"
            for gauge in pool.gauges
        )
        yield from (f"  team {team}" for team in pool.teams)
        yield from (f"  warm: {warm}" for warm in pool.warm)
        yield from (f"  {warning}" for warning in pool.warnings)
    if pool is None:
        yield "No pools: an admin has to apply a policy."
