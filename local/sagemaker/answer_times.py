"""How fast the service answers: rates of the account, and the time that a call takes."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import TypeVar

from local.clock import TwinClock
from local.wire import AwsError
from local.world_in_force import WorldInForce
from local.worlds import Rates, latency

T = TypeVar("T")


class AnswerTimes:
    """A manual clock does not move in a call: there a rate is one of that clock, and nothing takes time."""

    def __init__(self, world: WorldInForce, clock: TwinClock, *, seed: int) -> None:
        self._world = world
        self._clock = clock
        self._seed = seed
        self._lock = threading.Lock()
        self._rates = Rates()
        self._calls: Counter[str] = Counter()
        self._throttled: Counter[str] = Counter()
        self._closed = threading.Event()

    def keep(self, operation: str, answer: Callable[[], T]) -> T:
        """Answer a call in its time; it takes effect when half of that has passed.

        Raises:
            AwsError: the account calls this operation too often.
        """
        half_way = self._admit(operation) / 2
        self._pass(half_way)
        try:
            return answer()
        finally:
            self._pass(half_way)

    def throttled(self) -> dict[str, int]:
        """Return how many calls of each operation were refused."""
        with self._lock:
            return dict(self._throttled)

    def close(self) -> None:
        """Stop all waits."""
        self._closed.set()

    def _admit(self, operation: str) -> timedelta:
        """Return how long the call takes; drawn by the number of the operation's calls, not by time."""
        world = self._world.now
        with self._lock:
            if not self._rates.take(operation, world.rates, self._clock.now()):
                self._throttled[operation] += 1
                raise AwsError("ThrottlingException", "Rate exceeded")
            self._calls[operation] += 1
            draw = Random(f"{self._seed}/{operation}/{self._calls[operation]}")  # noqa: S311  not a secret
        return latency(world, draw)

    def _pass(self, wait: timedelta) -> None:
        if wait and not self._clock.manual:
            self._closed.wait(wait.total_seconds())
