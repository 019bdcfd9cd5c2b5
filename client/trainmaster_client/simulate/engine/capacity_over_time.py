"""The capacity of a replayed pool over time, by its calendar, its reservations and its training plans."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.plan_windows import PLANS_AHEAD
from trainmaster.core.policy.pool_changes import (
    AHEAD,
    BEFORE,
    changes_of,
    changes_with_time,
    hour_of,
    pool_at,
)

_HOUR = timedelta(hours=1)


@dataclass(slots=True, kw_only=True)
class CapacityOverTime:
    """Changes of one pool, known as far ahead as the plane knows them at an instant."""

    written: PoolPolicy
    changes: tuple[CapacityFrom, ...]
    """Changes in order; the first are of the day before the beginning."""
    known_until: datetime
    next_look: datetime | None = None
    """Instant from which the pool may be another than it was when it was last asked for."""

    @classmethod
    def of(cls, pool: PoolPolicy, *, begins: datetime) -> Self | None:
        """Return the changes of a pool; None if it stays as it is."""
        if not changes_with_time(pool) and not pool.known_plans:
            return None
        since, until = hour_of(begins) - BEFORE, hour_of(begins) + AHEAD
        changes = changes_of(pool, since=since, until=until, zone_of=ZoneInfo)
        return cls(written=pool, changes=changes, known_until=until)

    def is_as_asked(self, now: datetime) -> bool:
        """Tell whether the pool is what it was when it was last asked for."""
        return self.next_look is not None and now < self.next_look

    def at(self, now: datetime) -> PoolPolicy:
        """Return the pool at an instant; instants never go back."""
        hour = hour_of(now)
        while self.known_until < hour + AHEAD:
            self._learn()
        past = [change for change in self.changes if change.at <= now][-1:]
        self.changes = (*past, *(change for change in self.changes if change.at > now))
        known = [change for change in self.changes if change.at <= now or change.at < hour + AHEAD]
        pool = pool_at(self.written, known, now)
        if self.written.seen_plans:
            pool = pool.with_plans(self.written.seen_plans, now=now, until=hour + PLANS_AHEAD)
        by_the_clock = [change.at for change in pool.ahead[:1]]
        windows = [change.at for change in pool.plans_ahead[:1]]
        self.next_look = min([hour + _HOUR, *by_the_clock, *windows])
        return pool

    def fork(self) -> Self:
        return replace(self)

    def _learn(self) -> None:
        """Add the changes of further weeks to those that are known."""
        since, until = self.known_until, self.known_until + AHEAD
        first, *others = changes_of(self.written, since=since, until=until, zone_of=ZoneInfo)
        last = self.changes[-1]
        if (first.capacity, first.reserved) != (last.capacity, last.reserved):
            others.insert(0, first)
        self.changes += tuple(others)
        self.known_until = until
