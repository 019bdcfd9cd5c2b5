"""Threads that fetch blocks ahead of use; those side by side come by one request, each as it arrives."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeAlias
from weakref import finalize

MOST_BLOCKS = 8
"""Blocks of one request at most: 8 MiB, of which 30 ms until the first byte are a quarter at 100 MB/s."""
BlockKey: TypeAlias = tuple[int, int]
"""Number of the file, and number of the block in it."""
Run: TypeAlias = tuple[BlockKey, ...]
"""Blocks side by side in one file."""
Fetch: TypeAlias = Callable[[Run], Iterator[Callable[[], bytes]]]
"""Gives for each block of a run, in order, what returns it or raises why not."""
_Order: TypeAlias = "tuple[Run, list[Future[bytes]]]"
_Orders: TypeAlias = "SimpleQueue[_Order | None]"


def runs_of(keys: Iterable[BlockKey], *, threads: int) -> list[Run]:
    """Join blocks side by side, as far as each thread still gets a request; the first needed come first.

    Args:
        keys: Blocks in the order in which they are needed, each once.
        threads: How many requests can be under way.
    """
    needed = {key: number for number, key in enumerate(keys)}
    most = max(1, min(MOST_BLOCKS, len(needed) // threads))
    runs: list[list[BlockKey]] = []
    for file, block in sorted(needed):
        if runs and len(runs[-1]) < most and runs[-1][-1] == (file, block - 1):
            runs[-1].append((file, block))
        else:
            runs.append([(file, block)])
    return [tuple(run) for run in sorted(runs, key=lambda run: min(needed[key] for key in run))]


class Fetchers:
    """A few threads that fetch blocks; one starts when all others are busy, and they end with this object.

    The threads are daemons: a read that hangs must not keep a stopped attempt from ending.
    """

    def __init__(self, fetch: Fetch, *, threads: int) -> None:
        self._fetch, self._threads = fetch, threads
        self._orders: _Orders = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    def order(self, run: Run) -> "list[Future[bytes]]":
        futures: list[Future[bytes]] = [Future() for _ in run]
        self._orders.put((run, futures))
        if not self._idle.acquire(blocking=False) and self._started < self._threads:
            self._start()
        return futures

    def _start(self) -> None:
        self._started += 1
        threading.Thread(
            target=_work, args=(self._orders, self._idle, self._fetch), name="fetch", daemon=True
        ).start()
        finalize(self, self._orders.put, None)


def _work(orders: _Orders, idle: threading.Semaphore, fetch: Fetch) -> None:
    while (order := _next(orders, idle)) is not None:
        run, futures = order
        for future, block in zip(futures, fetch(run), strict=True):
            try:
                future.set_result(block())
            except BaseException as error:  # noqa: BLE001  raised where the block is asked for
                future.set_exception(error)


def _next(orders: _Orders, idle: threading.Semaphore) -> "_Order | None":
    try:
        return orders.get_nowait()
    except Empty:
        idle.release()
        return orders.get()
