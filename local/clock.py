"""The twin's time: the machine's clock, or one that stands still until it is advanced."""

import heapq
import itertools
import logging
import mmap
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

logger = logging.getLogger(__name__)

IDLE_TIMEOUT_SECONDS = 120.0
"""Seconds an advance waits for what one timer set off."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_SHARED = struct.Struct("<qq")
"""Microseconds since the epoch, twice so that a reader notices a torn write; zero: the machine's clock."""
_REAL = 0


class Activity:
    """Counts what is in flight (deliveries, invocations), so that others can wait until all is quiet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in_flight: Counter[str] = Counter()

    @contextmanager
    def busy(self, what: str = "delivery") -> Iterator[None]:
        with self._changed:
            self._in_flight[what] += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_flight[what] -= 1
                self._changed.notify_all()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight; return False if that takes longer than the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.in_flight(), timeout_s)

    def in_flight(self) -> tuple[str, ...]:
        return tuple(+self._in_flight)


@dataclass(order=True, slots=True)
class Timer:
    """An action to come; of two with the same instant the older goes first."""

    due: datetime
    number: int
    action: Callable[[], object] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class TwinClock:
    """Tells the time in the twin, and runs timers when they are due.

    A real clock runs its timers on one thread of its own. A manual clock stands still and runs them inside
    ``advance``, in the order of their time.
    """

    def __init__(self, *, manual: bool, speed: float = 60.0, start: datetime | None = None) -> None:
        if start is not None and not manual:
            raise ValueError("only a manual clock can start at another time than now")
        self.manual = manual
        self.speed = speed
        self.activity = Activity()
        self._frozen = start or datetime.now(UTC)
        self._timers: list[Timer] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._advancing = threading.Lock()
        self._shared: list[mmap.mmap] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def now(self) -> datetime:
        """Return the instant, aware, UTC."""
        return self._frozen if self.manual else datetime.now(UTC)

    def scaled(self, wait: timedelta) -> timedelta:
        """Return how long a wait of the real service lasts in the twin."""
        return wait / self.speed

    def call_later(self, wait: timedelta, action: Callable[[], object]) -> Timer:
        """Run ``action`` when ``wait`` has passed on this clock (speed does not shorten it)."""
        with self._changed:
            timer = Timer(due=self.now() + wait, number=next(self._numbers), action=action)
            heapq.heappush(self._timers, timer)
            if not self.manual and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run_timers, name="twin-clock", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return timer

    def advance(self, wait: timedelta) -> datetime:
        """Move a manual clock; returns when every timer due by then has run and nothing is in flight.

        Raises:
            ValueError: the clock is real, or ``wait`` is negative.
            TimeoutError: what a timer set off did not end in ``IDLE_TIMEOUT_SECONDS``.
        """
        if not self.manual:
            raise ValueError("a real clock cannot be advanced")
        if wait < timedelta():
            raise ValueError(f"time does not run backwards: {wait}")
        with self._advancing:
            target = self._frozen + wait
            self._settle()
            while (timer := self._pop_due(target)) is not None:
                self._set(max(timer.due, self._frozen))
                _run(timer)
                self._settle()
            self._set(target)
            return target

    def share(self, path: Path) -> None:
        """Keep a file that tells other processes this clock's time; they read it with ``shared_now``."""
        path.write_bytes(bytes(_SHARED.size))
        with path.open("r+b") as file:
            self._shared.append(mmap.mmap(file.fileno(), _SHARED.size))
        self._set(self._frozen)

    def close(self) -> None:
        """Drop what is still to come."""
        with self._changed:
            self._closed = True
            self._timers.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for shared in self._shared:
            shared.close()
        self._shared.clear()

    def _set(self, instant: datetime) -> None:
        self._frozen = instant
        stamp = (instant - _EPOCH) // _MICROSECOND if self.manual else _REAL
        for shared in self._shared:
            _SHARED.pack_into(shared, 0, stamp, stamp)

    def _settle(self) -> None:
        if not self.activity.wait_idle(IDLE_TIMEOUT_SECONDS):
            raise TimeoutError(
                f"still in flight after {IDLE_TIMEOUT_SECONDS:.0f} s: {self.activity.in_flight()}"
            )

    def _pop_due(self, instant: datetime) -> Timer | None:
        with self._changed:
            while self._timers and self._timers[0].due <= instant:
                timer = heapq.heappop(self._timers)
                if not timer.cancelled:
                    return timer
            return None

    def _run_timers(self) -> None:
        while (timer := self._await_due()) is not None:
            _run(timer)

    def _await_due(self) -> Timer | None:
        with self._changed:
            while not self._closed:
                if (timer := self._pop_due(self.now())) is not None:
                    return timer
                self._changed.wait(self._due_in())
        return None

    def _due_in(self) -> float:
        """Return seconds until the next timer; an hour if there is none (a new one wakes the thread)."""
        return (self._timers[0].due - self.now()).total_seconds() if self._timers else 3600.0


def each_minute(clock: TwinClock, *actions: Callable[[datetime], object]) -> None:
    """Run the actions one after the other whenever a minute of the clock has ended, with that instant."""

    def run() -> None:
        minute = clock.now().replace(second=0, microsecond=0)
        each_minute(clock, *actions)
        for action in actions:
            action(minute)

    now = clock.now()
    clock.call_later(now.replace(second=0, microsecond=0) + _MINUTE - now, run)


def shared_now(path: Path) -> datetime:
    """Return the twin's time as its clock shares it in ``path``."""
    while True:
        first, second = _SHARED.unpack(path.read_bytes())
        if first == second:
            return datetime.now(UTC) if first == _REAL else _EPOCH + first * _MICROSECOND


def _run(timer: Timer) -> None:
    try:
        timer.action()
    except Exception:  # the bulkhead of the timers: one that fails must not stop the others
        logger.exception("a timer failed")
