"""Changes of several threads in one transaction."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier, Event
from typing import Any

from trainmaster.core.errors import LostRaceError
from trainmaster.core.lifecycle.change import Change
from trainmaster.services.scheduler.group_commit import GroupCommit

from tests.builders import NOON, job


@dataclass
class Store:
    """Holds the first transaction until told; refuses those that are too long."""

    first: Event = field(default_factory=Event)
    begun: Event = field(default_factory=Event)
    refuses: bool = False
    sizes: list[int] = field(default_factory=list)

    def commit(self, changes: Sequence[Change], **_: Any) -> None:
        self.sizes.append(len(changes))
        self.begun.set()
        assert self.first.wait(10)
        if self.refuses:
            raise LostRaceError("one of them changed")


def written(store: Any, *, count: int) -> list[bool]:
    """By so many threads, all but one of which come while the first one's transaction is under way."""
    group, came = GroupCommit(), Barrier(count)

    def write(number: int) -> bool:
        if number:
            assert store.begun.wait(10)
        came.wait() if number else None
        one = job(f"job-{number}")
        return group.write(Change(before=one, after=one), store=store, clock=lambda: NOON)

    came = Barrier(count)
    with ThreadPoolExecutor(count) as threads:
        results = [threads.submit(write, number) for number in range(count)]
        assert store.begun.wait(10)
        came.wait()
        while len(group._entries) < count - 1:
            pass
        store.first.set()
        return [one.result() for one in results]


def test_who_comes_while_a_transaction_is_under_way_goes_with_the_next() -> None:
    store = Store()
    assert written(store, count=6) == [True] * 6
    assert store.sizes == [1, 5]


def test_no_transaction_has_more_than_eight() -> None:
    store = Store()
    assert written(store, count=12) == [True] * 12
    assert store.sizes == [1, 8, 3]


def test_what_was_refused_together_is_left_to_each() -> None:
    store = Store(refuses=True)
    assert written(store, count=4) == [False] * 4
    assert store.sizes == [1, 3]
