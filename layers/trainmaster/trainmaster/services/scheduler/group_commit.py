"""Write changes of several threads in one transaction; those that come while one runs share the next."""

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
    """Whether the change was written; None before the first try."""


@dataclass(slots=True)
class GroupCommit:
    """Groups changes that can be refused only because of the version of their job."""

    _entries: deque[_Entry] = field(default_factory=deque)
    _writing: Lock = field(default_factory=lambda: Lock())  # noqa: PLW0108  looked up late: simulated time has its own

    def write(self, change: Change, *, store: JobStore, clock: Clock) -> bool:
        """Write a change; False if that failed or its outcome is unknown, and it must be written alone.

        Crash safety: as if the changes were written one by one, a moment later.
        """
        entry = _Entry(change)
        self._entries.append(entry)
        with self._writing:
            while entry.is_written is None:
                self._write_some(store, clock)
        return entry.is_written

    def _write_some(self, store: JobStore, clock: Clock) -> None:
        batch = [self._entries.popleft() for _ in range(min(MOST, len(self._entries)))]
        try:
            store.commit([entry.change for entry in batch], at=clock())
        except Exception:  # noqa: BLE001  whatever it is, it comes again to whom it belongs
            _mark(batch, is_written=False)
        else:
            _mark(batch, is_written=True)


def _mark(entries: list[_Entry], *, is_written: bool) -> None:
    for entry in entries:
        entry.is_written = is_written
