"""Calendars of pools at an instant: the capacity in force, and the changes that are to come."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.history.past_records import CapacityChange
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.calendar_changes import capacity_changes

AHEAD = timedelta(days=32)
"""Time ahead in which changes are known: longer than SageMaker's longest MaxRuntimeInSeconds."""
BEFORE = timedelta(days=1)
"""Time for which a lowering stops what runs above it; older ones have done so, or wait for ends."""
NOTED = timedelta(minutes=5)
"""Time in which a change is recorded, by each run of ``reconcile``: one of them may fail."""
MOST_CHANGES = 400
"""Changes of one pool in the time ahead: more would cost every pass."""


def at_instant(policy: Policy, now: datetime) -> Policy:
    """Return the policy with the capacities of an instant in its pools, and the changes ahead.

    Args:
        policy: As it was parsed.
        now: The instant, UTC.

    Raises:
        PolicyViolationError: A calendar names a time zone that there is not, or changes too often.
    """
    if not any(pool.calendar for pool in policy.pools):
        return policy
    errors: list[FieldError] = []
    pools = tuple(
        _pool_at(pool, f"pools[{number}].calendar", now, errors) if pool.calendar else pool
        for number, pool in enumerate(policy.pools)
    )
    if errors:
        raise PolicyViolationError("a calendar cannot be read", errors=errors)
    return replace(policy, pools=pools)


def recent_changes(policy: Policy, now: datetime) -> Iterator[CapacityChange]:
    """Yield the changes by calendars of the last minutes, for the history.

    Args:
        policy: The policy in force.
        now: The instant up to which changes count.
    """
    for pool in policy.pools:
        changes = _changes(pool, now) if pool.calendar else ()
        for before, change in pairwise(changes):
            if now - NOTED < change.at <= now:
                yield CapacityChange(
                    pool=pool.name,
                    at=change.at,
                    capacity=pool_vector(pool.since(change)),
                    before=pool_vector(pool.since(before)),
                )


def _pool_at(pool: PoolPolicy, field: str, now: datetime, errors: list[FieldError]) -> PoolPolicy:
    unknown = list(_unknown_zones(pool, field))
    if unknown:
        errors += unknown
        return pool
    changes = _changes(pool, now)
    if len(changes) > MOST_CHANGES:
        message = f"changes the capacity {len(changes)} times in {AHEAD.days} days"
        errors.append(FieldError(field=field, message=message, hint=f"write at most {MOST_CHANGES} changes"))
        return pool
    ahead = tuple(change for change in changes if change.at > now)
    in_force = [change for change in changes if change.at <= now][-1]
    return replace(pool, ahead=ahead).since(in_force)


def _changes(pool: PoolPolicy, now: datetime) -> tuple[CapacityFrom, ...]:
    # From full hours on, so that all functions find the same within an hour.
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return capacity_changes(
        pool.base or pool.capacity, pool.calendar, since=hour - BEFORE, until=hour + AHEAD, zone_of=ZoneInfo
    )


def _unknown_zones(pool: PoolPolicy, field: str) -> Iterator[FieldError]:
    for number, entry in enumerate(pool.calendar):
        if entry.every is None:
            continue
        try:
            ZoneInfo(entry.timezone)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            hint = "write a name of the IANA database, e.g. Europe/Berlin"
            message = f"there is no time zone {entry.timezone!r}"
            yield FieldError(field=f"{field}[{number}].timezone", message=message, hint=hint)
