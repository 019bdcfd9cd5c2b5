"""Run tasks side by side in threads: calls wait for AWS, not for the processor."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

HANDS = 8
"""Calls in flight at once; botocore keeps 10 connections for each client."""


class _Threads:
    hands = HANDS

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None:
        """Run all tasks; the next one is drawn in the calling thread when a worker is free.

        The first exception of a task is raised.
        """
        with ThreadPoolExecutor(HANDS) as threads:
            under_way: set[Future[object]] = set()
            for task in tasks:
                under_way.add(threads.submit(task))
                if len(under_way) >= HANDS:
                    over, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                    for call in over:
                        call.result()
            for call in under_way:
                call.result()


beside = _Threads()
