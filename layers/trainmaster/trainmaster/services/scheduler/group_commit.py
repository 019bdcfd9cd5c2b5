"""Changes of several threads in one transaction: who comes while one is under way goes with the next."""

from collections import deque
from dataclasses import dataclass, field
from threading import Lock

from trainmaster.core.lifecycle.change import Change
from trainmaster.ports import Clock, JobStore

MOST = 8
"""Changes of one transaction of at most 100 rows; a record of a start has five or six."""


@dataclass(slots=True)
class _Entry:
    change: Change
    is_written: bool | None = None
    """None: nobody has tried yet."""


@dataclass(slots=True)
class GroupCommit:
    """For changes that nothing but the version of their job can refuse."""

    _entries: deque[_Entry] = field(default_factory=deque)
    _writing: Lock = field(default_factory=lambda: Lock())  # noqa: PLW0108  looked up late: simulated time has its own

    def write(self, change: Change, *, store: JobStore, clock: Clock) -> bool:
        """False: its transaction did not come to be, or nobody knows; it is to be written by itself.

        Crash safety: as of changes that are written one by one, a moment later.
        """
        entry = _Entry(change)
        self._entries.append(entry)
        with self._writing:
            while entry.is_written is None:
                self._write_some(store, clock)
        return entry.is_written

    def _write_some(self, store: JobStore, clock: Clock) -> None:
        some = [self._entries.popleft() for _ in range(min(MOST, len(self._entries)))]
        try:
            store.commit([one.change for one in some], at=clock())
        except Exception:  # noqa: BLE001  whatever it is, it comes again to whom it belongs
            _mark(some, is_written=False)
        else:
            _mark(some, is_written=True)


def _mark(entries: list[_Entry], *, is_written: bool) -> None:
    for entry in entries:
        entry.is_written = is_written
