"""Several handlers at once: each runs in a thread, and hands over to one drawn by dice before each AWS call.

One thread moves at a time, so the same seed always gives the same order. Each is a function process of its
own, as invocations at the same time are: they share the table, but neither memory nor locks.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.bootstrap import Wiring

from tests.integration.world import World

PATIENCE_SECONDS = 30.0
"""A baton that nobody passes for this long is a fault of this module."""


@dataclass(slots=True, eq=False)
class _Actor:
    act: Callable[[], Any]
    process: Wiring
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    result: Any = None
    error: BaseException | None = None


class Interleaving:
    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._dice = random.Random(seed)
        self._going: list[_Actor] = []
        self._current: _Actor | None = None
        self._over = threading.Semaphore(0)

    def run(self, acts: Sequence[Callable[[], Any]]) -> list[Any]:
        """All of them to their ends; their results in the order given. Raises what any of them raised."""
        actors = [_Actor(act, process=self._world.fresh_process()) for act in acts]
        threads = [threading.Thread(target=self._play, args=(actor,), daemon=True) for actor in actors]
        self._going = list(actors)
        with self._world.wired(between_calls=self._hand_over, process=self._process):
            for thread in threads:
                thread.start()
            self._next()
            assert self._over.acquire(timeout=PATIENCE_SECONDS), "nobody passes the baton"
        for thread in threads:
            thread.join()
        for actor in actors:
            if actor.error is not None:
                raise actor.error
        return [actor.result for actor in actors]

    def _play(self, actor: _Actor) -> None:
        actor.turn.acquire()
        try:
            actor.result = actor.act()
        except BaseException as error:  # noqa: BLE001  raised again by the thread of the test
            actor.error = error
        self._going.remove(actor)
        self._next()

    def _next(self) -> None:
        if not self._going:
            self._over.release()
            return
        self._current = self._dice.choice(self._going)
        self._current.turn.release()

    def _process(self) -> Wiring:
        """Of the thread whose turn it is."""
        assert self._current is not None
        return self._current.process

    def _hand_over(self) -> None:
        """Called by the thread whose turn it is."""
        mine = self._current
        assert mine is not None
        self._next()
        mine.turn.acquire()
