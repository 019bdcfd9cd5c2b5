"""Starts a program, and ends it: politely, or with everything below it at once."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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


def kill_tree(leader: int) -> None:
    """SIGKILL to all of a session and all below them, whatever sessions and groups those made."""
    for one in _family(leader):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def _family(leader: int) -> list[int]:
    """Read off /proc, so on Linux alone. Empty when all have ended, though another may have the number."""
    found: list[int] = []
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            # The name in parentheses may hold anything; state, parent, group and session follow it.
            _, parent, _, session, *_ = path.read_text().rpartition(")")[2].split()
            children.setdefault(int(parent), []).append(int(path.parent.name))
            if int(session) == leader:
                found.append(int(path.parent.name))
    for one in found:  # grows while it is walked
        found += [child for child in children.get(one, []) if child not in found]
    return found
