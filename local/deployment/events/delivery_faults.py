"""Faults of event delivery on demand: EventBridge promises at least once and no order."""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

from local.clock import TwinClock

HELD_BACK = timedelta(minutes=1)
"""Longest time that an event that is to lose its turn waits for another one to pass it."""

Deliver: TypeAlias = Callable[[], object]


class _Chance:
    """Frequency of a fault: a share up to 1, or the number of next times."""

    def __init__(self, setting: float) -> None:
        self._share = setting if setting <= 1 else 0.0
        self._times = int(setting) if setting > 1 else 0

    def comes(self, dice: random.Random) -> bool:
        if self._times:
            self._times -= 1
            return True
        return dice.random() < self._share


class DeliveryFaults:
    """Drops, doubles and reorders deliveries; none until told to."""

    def __init__(self, clock: TwinClock, *, seed: int) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[Deliver] = []
        self.set(seed=seed)

    def set(self, *, drop: float = 0, duplicate: float = 0, reorder: float = 0, seed: int = 0) -> None:
        """Take new settings.

        Each of ``drop``, ``duplicate`` and ``reorder`` is the share of deliveries from 0 to 1, or a whole
        number above 1: then it happens to so many of the next deliveries and to none after them.
        """
        with self._lock:
            self._dice = random.Random(seed)  # noqa: S311  repeatable on purpose
            self._drop, self._duplicate, self._reorder = _Chance(drop), _Chance(duplicate), _Chance(reorder)

    def pass_on(self, deliver: Deliver) -> None:
        """Deliver now, later, twice or never."""
        for delivery in self._due(deliver):
            delivery()

    def _due(self, deliver: Deliver) -> list[Deliver]:
        with self._lock:
            if self._drop.comes(self._dice):
                return []
            copies = [deliver] * (2 if self._duplicate.comes(self._dice) else 1)
            if self._reorder.comes(self._dice):
                self._held += copies
                self._clock.call_later(self._clock.scaled(HELD_BACK), self._release)
                return []
            return copies + self._take_held()

    def _release(self) -> None:
        with self._lock:
            held = self._take_held()
        for delivery in held:
            delivery()

    def _take_held(self) -> list[Deliver]:
        held, self._held = self._held, []
        return held
