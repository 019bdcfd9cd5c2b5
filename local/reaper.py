"""Lets no process outlive the twin: two processes watch over each other and over everything below them.

The user's process becomes the reaper and forks the twin. When the twin ends, however that happens, the reaper
ends all that is left below it. When the reaper is killed, the kernel tells the twin, which does the same.
Both are "child subreapers": a process whose parent died comes to them, so nothing gets out of their sight.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_KILL_SECONDS = 5.0
_PAUSE_SECONDS = 0.005
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def supervise(twin: Callable[[], int]) -> int:
    """Run ``twin`` in a child process and answer its exit code when nothing below it is left."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    sys.stdout.flush()
    reaper = os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(_run_twin(twin, reaper))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: _forward(child, received))
    _, status = os.waitpid(child, 0)
    kill_descendants()
    return os.waitstatus_to_exitcode(status)


def kill_descendants() -> None:
    """End every process below this one."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (below := list(_descendants(os.getpid()))) and time.monotonic() < deadline:
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _bury()
        time.sleep(_PAUSE_SECONDS)


def _run_twin(twin: Callable[[], int], reaper: int) -> int:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    code = 1
    try:
        if os.getppid() == reaper:  # else it died before the kernel knew whom to tell
            code = twin()
    except BaseException:  # noqa: BLE001  bulkhead: the child must not return into its parent's code
        traceback.print_exc()
    kill_descendants()
    with suppress(OSError):
        sys.stdout.flush()
    return code


def _forward(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _prctl(option: int, value: int) -> None:
    """Ask the kernel; where there is no such call (macOS) the twin still ends its processes itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _descendants(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _living():
        children.setdefault(parent, []).append(pid)
    waiting = list(children.get(root, []))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def _living() -> Iterator[tuple[int, int]]:
    """Yield each process with its parent, zombies left out."""
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            # "pid (name) state ppid ...", and a name may hold spaces and brackets
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                yield int(entry.name), int(parent)


def _bury() -> None:
    """Take the exit codes of dead children, so that they are no longer listed."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
