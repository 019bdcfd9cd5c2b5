"""Tasks beside each other, in threads: calls wait for AWS, not for the processor."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

HANDS = 8
"""Calls under way at once. botocore keeps 10 connections for each client."""


class _Threads:
    hands = HANDS

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None:
        """Do them all; the next one is drawn in this thread, when a hand is free."""
        with ThreadPoolExecutor(HANDS) as threads:
            under_way: set[Future[object]] = set()
            for task in tasks:
                under_way.add(threads.submit(task))
                if len(under_way) >= HANDS:
                    over, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                    for one in over:
                        one.result()
            for one in under_way:
                one.result()


beside = _Threads()
