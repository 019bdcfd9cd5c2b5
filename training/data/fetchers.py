"""A few threads that fetch blocks. Daemons: a read that hangs must not keep a stopped attempt from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeAlias
from weakref import finalize

BlockKey: TypeAlias = tuple[int, int]
"""Number of the shard, number of the block in it."""
_Orders: TypeAlias = "SimpleQueue[tuple[BlockKey, Future[bytes]] | None]"


class Fetchers:
    """The threads start with the first order and end when this object is gone."""

    def __init__(self, fetch: Callable[[BlockKey], bytes], *, threads: int) -> None:
        self._fetch, self._threads = fetch, threads
        self._orders: _Orders = SimpleQueue()
        self._started = False

    def order(self, key: BlockKey) -> "Future[bytes]":
        if not self._started:
            self._start()
        future: Future[bytes] = Future()
        self._orders.put((key, future))
        return future

    def _start(self) -> None:
        self._started = True
        for _ in range(self._threads):
            threading.Thread(
                target=_work, args=(self._orders, self._fetch), name="fetch", daemon=True
            ).start()
        finalize(self, _dismiss, self._orders, self._threads)


def _work(orders: _Orders, fetch: Callable[[BlockKey], bytes]) -> None:
    while (order := orders.get()) is not None:
        key, future = order
        try:
            future.set_result(fetch(key))
        except BaseException as error:  # noqa: BLE001  raised where the block is asked for
            future.set_exception(error)


def _dismiss(orders: _Orders, threads: int) -> None:
    for _ in range(threads):
        orders.put(None)
