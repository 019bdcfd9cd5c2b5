"""Take turns at calling AWS operations: all functions share the account's pace, kept in the table."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.call_rate import CallRate, refused, taken
from trainmaster.core.errors import UnavailableError
from trainmaster.ports import Clock, PaceStore

KNOWN_FOR = timedelta(seconds=1)
"""How long a pace is used before it is read again; meanwhile one call more may be throttled."""
TRIES = 8
"""Tries against other functions that take turns at the same instant; each takes milliseconds."""


@dataclass(frozen=True, slots=True)
class _Known:
    pace: CallRate
    read_at: datetime


@dataclass(slots=True, kw_only=True)
class AccountTurns:
    """Implements ``Turns``. If the table is out of reach, calls go out at once and AWS throttles them."""

    paces: PaceStore
    clock: Clock
    pause: Callable[[float], None]
    """Waits so many seconds."""
    draw: Callable[[], float]
    """Returns a random number from 0 to 1."""
    _known: dict[str, _Known] = field(default_factory=dict)
    _accepted: Counter[str] = field(default_factory=Counter)
    """Accepted calls since the last turn taken of the operation."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for(self, operation: str, *, most: timedelta) -> bool:
        with self._lock:
            wait = self._take(operation, most)
        if wait is not None and wait > timedelta():
            self.pause(wait.total_seconds())
        return wait is not None

    def throttled(self, operation: str) -> None:
        with self._lock:
            self._change(operation, lambda pace, now: refused(pace, now=now, draw=self.draw()))

    def accepted(self, operation: str) -> None:
        with self._lock:
            self._accepted[operation] += 1

    def _take(self, operation: str, most: timedelta) -> timedelta | None:
        """Take the next turn and return the wait for it; None if there is none within ``most``."""
        try:
            return self._taken(operation, most)
        except UnavailableError:
            return timedelta()

    def _taken(self, operation: str, most: timedelta) -> timedelta | None:
        for _ in range(TRIES):
            now = self.clock()
            pace = self._pace(operation, now)
            if not pace.holds(now):
                return timedelta()
            turn = pace.turn(now)
            if turn - now > most:
                return None
            after = taken(pace, at=turn, accepted=self._accepted[operation])
            if self._write(operation, pace, after, now):
                self._accepted[operation] = 0
                return turn - now
        return timedelta()

    def _change(self, operation: str, change: Callable[[CallRate, datetime], CallRate]) -> None:
        try:
            for _ in range(TRIES):
                now = self.clock()
                pace = self._pace(operation, now)
                after = change(pace, now)
                if after == pace or self._write(operation, pace, after, now):
                    return
        except UnavailableError:
            return

    def _pace(self, operation: str, now: datetime) -> CallRate:
        known = self._known.get(operation)
        if known is None or not timedelta() <= now - known.read_at < KNOWN_FOR:
            known = _Known(self.paces.pace(operation), now)
            self._known[operation] = known
        return known.pace

    def _write(self, operation: str, before: CallRate, after: CallRate, now: datetime) -> bool:
        if self.paces.change_pace(operation, before, after):
            self._known[operation] = _Known(after, now)
            return True
        self._known.pop(operation, None)
        return False
