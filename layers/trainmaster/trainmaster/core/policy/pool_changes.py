"""Changes of a pool with time, by its calendar and its reservations, and the pool at an instant of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.calendar_changes import ZoneOf, capacity_changes
from trainmaster.core.policy.pool_policy import PoolPolicy
from trainmaster.core.policy.reservation import with_reserved

AHEAD = timedelta(days=32)
"""Time ahead in which changes are known: longer than SageMaker's longest MaxRuntimeInSeconds."""
BEFORE = timedelta(days=1)
"""Time for which a lowering stops what runs above it; older ones have done so, or wait for ends."""


def changes_with_time(pool: PoolPolicy) -> bool:
    """Tell whether the pool has a calendar or reservations."""
    return bool(pool.calendar or pool.reservations)


def changes_of(
    pool: PoolPolicy, *, since: datetime, until: datetime, zone_of: ZoneOf
) -> tuple[CapacityFrom, ...]:
    """Return the capacity at ``since``, and each change of it or of what is reserved before ``until``."""
    by_calendar = capacity_changes(
        pool.base or pool.capacity, pool.calendar, since=since, until=until, zone_of=zone_of
    )
    return with_reserved(by_calendar, pool.reservations, until=until)


def hour_of(instant: datetime) -> datetime:
    """Return the full hour: changes are counted from it on, so that all within an hour find the same."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def pool_at(pool: PoolPolicy, changes: Sequence[CapacityFrom], now: datetime) -> PoolPolicy:
    """Return the pool at an instant, with the changes that are to come.

    Args:
        pool: As it was parsed, or at an earlier instant.
        changes: From an instant up to ``now`` on.
        now: The instant, UTC.
    """
    in_force = [change for change in changes if change.at <= now][-1]
    ahead = tuple(change for change in changes if change.at > now)
    return replace(pool, ahead=ahead).since(in_force)
