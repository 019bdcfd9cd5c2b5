"""What a process keeps of the jobs it looks at, without growing for as long as it lives."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

MOST_KEPT = 500
"""A description with its job and request takes some 40 kB in memory."""

Kept = TypeVar("Kept")


class RecentlyUsed(Generic[Kept]):
    """By name; beyond ``most`` the one that was not used for longest goes. Threads may share it.

    All that is kept so can be asked for again.
    """

    def __init__(self, *, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, name: str) -> Kept | None:
        with self._changing:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def keep(self, name: str, value: Kept) -> None:
        with self._changing:
            self._kept[name] = value
            self._kept.move_to_end(name)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def take(self, name: str) -> Kept | None:
        """And keep it no longer."""
        with self._changing:
            return self._kept.pop(name, None)
