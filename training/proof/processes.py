"""Starts a program, and ends it: politely, or with everything below it at once."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

_PROC = Path("/proc")


@contextmanager
def started(
    command: Sequence[str], *, env: Mapping[str, str], errors: Path, seconds: float
) -> Iterator["subprocess.Popen[str]"]:
    """In a session of its own; its lines are to be read from ``stdout``.

    Nothing of it is left at the end, nor after ``seconds``.
    """
    with errors.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603  the program under proof
            command, env=env, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True
        )
    patience = Timer(seconds, kill_tree, [process.pid])
    patience.daemon = True
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        kill_tree(process.pid)
        process.communicate()


def kill_tree(pid: int) -> None:
    """SIGKILL to a process and to all below it, whatever sessions they made for themselves."""
    for one in (pid, *_below(pid)):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _below(pid: int) -> list[int]:
    """Children, their children and so on; without /proc (not Linux) nobody is found."""
    parents: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; state and parent follow it.
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended meanwhile
        parents.setdefault(parent, []).append(int(path.parent.name))
    found = list(parents.get(pid, []))
    for one in found:  # grows while it is walked
        found += parents.get(one, [])
    return found
