"""Processes of this machine, as the kernel lists them."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_POLL_SECONDS = 0.02


def children_of(pid: int) -> list[int]:
    """Direct children, zombies left out."""
    return [child for child, parent in _living() if parent == pid]


def tree_of(pid: int) -> set[int]:
    """The process and everything below it."""
    parents = dict(_living())
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found


def environment_of(pid: int) -> dict[str, str]:
    """Empty for a process that is gone."""
    with suppress(OSError):
        pairs = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)
    return {}


def still_alive(pids: Iterable[int], *, within_seconds: float) -> set[int]:
    """Those that have not ended in this time; returns as soon as none is left."""
    deadline = time.monotonic() + within_seconds
    while (alive := {pid for pid, _ in _living()} & set(pids)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return alive


def _living() -> Iterator[tuple[int, int]]:
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            # "pid (name) state ppid ...", and a name may hold spaces and brackets
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                yield int(entry.name), int(parent)
