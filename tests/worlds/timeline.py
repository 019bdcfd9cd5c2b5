"""Virtual time: everything that happens has an instant, and actors hand over where they wait.

An actor is a thread, but one moves at a time and who is next follows from the instants alone: the same seed
gives the same run. Between two waits no time passes.
"""

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest import mock

PATIENCE_SECONDS = 120.0
"""Of real time: an actor that neither waits nor ends for this long is a fault."""


class KilledError(BaseException):
    """The process is gone; no ``except Exception`` sees it."""


@dataclass(slots=True, eq=False)
class Life:
    """What the threads of one process share."""

    ends: float = float("inf")
    """Instant at which it is killed."""
    killed: bool = False
    calls: int = 0
    belongs_to: Any = None


@dataclass(slots=True, eq=False)
class _Actor:
    act: Callable[[], Any]
    life: Life
    over: Callable[["_Actor"], None]
    turn: threading.Lock = field(default_factory=threading.Lock)
    result: Any = None
    error: BaseException | None = None


class Timeline:
    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the beginning."""
        self._due: list[tuple[float, int, Callable[[], None] | _Actor]] = []
        self._numbers = count()
        self._until = 0.0
        self._back = threading.Semaphore(0)
        self._own = threading.local()

    # ---- what happens

    def at(self, instant: float, act: Callable[[], None]) -> None:
        """``act`` must not wait: it starts actors, or changes what they see."""
        heapq.heappush(self._due, (max(instant, self.now), next(self._numbers), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + seconds, act)

    def start(
        self, act: Callable[[], Any], *, life: Life, over: Callable[[Any, BaseException | None], None]
    ) -> None:
        """A process begins now; ``over`` gets what it returned or raised."""
        self._start(_Actor(act=act, life=life, over=lambda one: over(one.result, one.error)))

    def run(self, until: float, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Everything up to this instant; ends earlier once ``unless`` holds."""
        self._until = until
        while self._due and self._due[0][0] <= until and not unless():
            self.now, _, what = heapq.heappop(self._due)
            if isinstance(what, _Actor):
                what.turn.release()
                assert self._back.acquire(timeout=PATIENCE_SECONDS), "an actor neither waits nor ends"
            else:
                what()
        if not unless():
            self.now = max(self.now, until)

    # ---- what actors do

    @property
    def life(self) -> Life | None:
        """Of the actor that asks; None for everybody else."""
        actor: _Actor | None = getattr(self._own, "actor", None)
        return None if actor is None else actor.life

    def wait(self, seconds: float) -> None:
        """Raises KilledError where the life of the process ends before."""
        actor: _Actor | None = getattr(self._own, "actor", None)
        assert actor is not None, "only actors wait"
        life, wake = actor.life, self.now + seconds
        if not life.killed and wake < life.ends:
            self._wait(actor, wake)
        if life.killed or wake >= life.ends:
            self._wait(actor, max(life.ends, self.now))
            life.killed = True
            raise KilledError

    def beside(self, tasks: Iterable[Callable[[], object]], *, at_most: int) -> None:
        """Do them all in threads of the process that asks, which draws the next one when a hand is free."""
        parent: _Actor | None = getattr(self._own, "actor", None)
        assert parent is not None, "only actors have others work for them"
        hands = _Hands(self, parent)
        for task in tasks:
            hands.under_way += 1
            self._start(_Actor(act=task, life=parent.life, over=hands.over))
            if hands.under_way >= at_most:
                hands.wait_for_one()
        while hands.under_way:
            hands.wait_for_one()
        if hands.errors:
            raise hands.errors[0]

    def lock(self) -> "TimelineLock":
        """As ``threading.Lock``, for who holds it while he waits."""
        return TimelineLock(self)

    def _start(self, actor: _Actor) -> None:
        actor.turn.acquire()
        threading.Thread(target=self._play, args=(actor,), daemon=True).start()
        self._wake(actor, self.now)

    def _play(self, actor: _Actor) -> None:
        self._own.actor = actor
        actor.turn.acquire()
        try:
            actor.result = actor.act()
        except BaseException as error:  # noqa: BLE001  whoever started it judges
            actor.error = error
        actor.over(actor)
        self._back.release()

    def _wait(self, actor: _Actor, wake: float) -> None:
        if wake <= self._until and (not self._due or wake < self._due[0][0]):
            self.now = wake  # nothing happens before
            return
        self._wake(actor, wake)
        self._hand_over(actor)

    def _wake(self, actor: _Actor, instant: float) -> None:
        heapq.heappush(self._due, (instant, next(self._numbers), actor))

    def _hand_over(self, actor: _Actor) -> None:
        self._back.release()
        actor.turn.acquire()

    # ---- the clock of the process

    @contextmanager
    def instead_of_the_clock(self) -> Iterator[None]:
        """``time.sleep`` and ``time.monotonic`` of actors are ours; of everybody else the machine's."""
        sleep, monotonic = time.sleep, time.monotonic

        def wait(seconds: float) -> None:
            if self.life is None:
                sleep(seconds)
            else:
                self.wait(seconds)

        def now() -> float:
            return monotonic() if self.life is None else self.now

        with mock.patch.object(time, "sleep", wait), mock.patch.object(time, "monotonic", now):
            yield


@dataclass(slots=True, eq=False)
class TimelineLock:
    timeline: Timeline
    _held: bool = False
    _waiting: list[_Actor] = field(default_factory=list)

    def __enter__(self) -> bool:
        actor: _Actor | None = getattr(self.timeline._own, "actor", None)
        while actor is not None and self._held:
            self._waiting.append(actor)
            self.timeline._hand_over(actor)
        self._held = actor is not None
        return True

    def __exit__(self, *_: object) -> None:
        self._held = False
        if self._waiting:
            self.timeline._wake(self._waiting.pop(0), self.timeline.now)


@dataclass(slots=True, eq=False)
class _Hands:
    """The threads that work for one actor."""

    timeline: Timeline
    parent: _Actor
    under_way: int = 0
    waits: bool = False
    errors: list[BaseException] = field(default_factory=list)

    def over(self, one: _Actor) -> None:
        self.under_way -= 1
        if one.error is not None:
            self.errors.append(one.error)
        if self.waits:
            self.waits = False
            self.timeline._wake(self.parent, self.timeline.now)

    def wait_for_one(self) -> None:
        self.waits = True
        self.timeline._hand_over(self.parent)
