"""Child processes of the twin: each in a session of its own, and gone with all it started when it ends.

A container ends with its first process. Here that process may leave others behind, some of them in sessions
of their own (torchrun starts its workers so), which no signal to a group reaches. They are found by a
variable that they inherited.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_READ_BYTES = 64 * 1024
_KILL_TIMEOUT_SECONDS = 5.0
_KILL_PAUSE_SECONDS = 0.05

_EXIT_BY_SIGNAL = 128
"""A process that died of signal n ends with 128 + n, as shells and containers say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    mark: str
    """Name of a variable in ``env`` whose value no other child has."""


class Child:
    """A running child. Its standard output and error go to ``on_output`` as they come, from one thread.

    ``on_exit`` gets the exit code, once, after the last output and when nothing the child started is left;
    what cannot be found, because it threw its environment away, is waited for only a few seconds.
    """

    def __init__(
        self, command: Command, *, on_output: Callable[[bytes], None], on_exit: Callable[[int], None]
    ) -> None:
        """Raises ``OSError`` when there is nothing to run under that name."""
        self._command = command
        self._on_output = on_output
        self._on_exit = on_exit
        self._process = subprocess.Popen(
            list(command.argv),
            env=dict(command.env),
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, name=f"output-{self.pid}", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name=f"exit-{self.pid}", daemon=True)

    def watch(self) -> None:
        """Begin to listen; nothing is called before this."""
        self._reader.start()
        self._watcher.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> bool:
        """Send SIGTERM to the child alone, as to a container's first process; False if it has ended."""
        if not self.is_running:
            return False
        self._process.send_signal(signal.SIGTERM)
        return True

    def kill(self) -> None:
        """Send SIGKILL to the child and to all it started."""
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def join(self) -> None:
        """Returns after ``on_exit``."""
        self._watcher.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while output := os.read(pipe.fileno(), _READ_BYTES):
                self._on_output(output)

    def _watch(self) -> None:
        code = self._process.wait()
        _kill_marked(f"{self._command.mark}={self._command.env[self._command.mark]}")
        self._reader.join(_KILL_TIMEOUT_SECONDS)
        self._on_exit(code if code >= 0 else _EXIT_BY_SIGNAL - code)


def _kill_marked(mark: str) -> None:
    """End every process with this in its environment; again until none is left, since they may fork."""
    deadline = time.monotonic() + _KILL_TIMEOUT_SECONDS
    killed: set[int] = set()
    while (pids := set(_marked(os.fsencode(mark)))) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= pids
        time.sleep(_KILL_PAUSE_SECONDS)
    for pid in killed:  # orphans come to the twin where it is a subreaper; then it has to bury them
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _marked(mark: bytes) -> Iterator[int]:
    """Yield processes of this user whose environment has the mark; none if the system has no /proc."""
    if not _PROC.is_dir():
        return
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
