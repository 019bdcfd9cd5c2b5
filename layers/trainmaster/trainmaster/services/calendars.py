"""Calendars and reservations of pools at an instant: what is in force, and the changes that are to come."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.history.past_records import CapacityChange
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.pool_changes import (
    AHEAD,
    BEFORE,
    changes_of,
    changes_with_time,
    hour_of,
    pool_at,
)
from trainmaster.core.policy.reservation import overbooked

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
    if not any(changes_with_time(pool) for pool in policy.pools):
        return policy
    errors: list[FieldError] = []
    pools = tuple(
        _pool_at(pool, f"pools[{number}].calendar", now, errors) if changes_with_time(pool) else pool
        for number, pool in enumerate(policy.pools)
    )
    if errors:
        raise PolicyViolationError("a calendar cannot be read", errors=errors)
    return replace(policy, pools=pools)


def refuse_overbooked(policy: Policy, now: datetime) -> None:
    """Refuse reservations of more than their pool has at an instant of their time that is to come.

    A policy that is put is checked, and none that is stored: an earlier release may have accepted it.

    Args:
        policy: As ``at_instant`` returned it.
        now: The instant, UTC.

    Raises:
        PolicyViolationError: Names each reservation, the type and the first such instant.
    """
    errors: dict[str, FieldError] = {}
    for number, pool in enumerate(policy.pools):
        for changes in _reserved_times(pool, now):
            for error in overbooked(pool.reservations, changes, f"pools[{number}].reservations"):
                errors.setdefault(error.field, error)
    if errors:
        raise PolicyViolationError("more is reserved than there is", errors=[*errors.values()])


def _reserved_times(pool: PoolPolicy, now: datetime) -> Iterator[tuple[CapacityFrom, ...]]:
    """Yield the changes in all times of reservations, in parts: the cost grows with the square of a part."""
    since = now
    while to_come := [reservation for reservation in pool.reservations if reservation.to > since]:
        since = max(since, min(reservation.from_ for reservation in to_come))
        until = min(since + AHEAD, max(reservation.to for reservation in to_come))
        yield changes_of(pool, since=since, until=until, zone_of=ZoneInfo)
        since = until


def recent_changes(policy: Policy, now: datetime) -> Iterator[CapacityChange]:
    """Yield the changes by calendars of the last minutes, for the history.

    Args:
        policy: The policy in force.
        now: The instant up to which changes count.
    """
    for pool in policy.pools:
        changes = _changes_around(pool, now) if pool.calendar else ()
        for before, change in pairwise(changes):
            if now - NOTED < change.at <= now and change.capacity != before.capacity:
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
    changes = _changes_around(pool, now)
    if len(changes) > MOST_CHANGES:
        message = f"changes the capacity {len(changes)} times in {AHEAD.days} days"
        errors.append(FieldError(field=field, message=message, hint=f"write at most {MOST_CHANGES} changes"))
        return pool
    return pool_at(pool, changes, now)


def _changes_around(pool: PoolPolicy, now: datetime) -> tuple[CapacityFrom, ...]:
    hour = hour_of(now)
    return changes_of(pool, since=hour - BEFORE, until=hour + AHEAD, zone_of=ZoneInfo)


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
