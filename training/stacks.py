"""Where this rank is, on SIGUSR1: the stacks of its threads to the log, its flight recorder to the output.

No torch here: a program that hangs while it is imported must answer too. The stacks are written by the
handler of the signal itself, so a rank that waits in C++ writes them as well.
"""

import contextlib
import faulthandler
import signal
import socket
import sys
import threading
from pathlib import Path

from training.options.choices import DebugLevel

_STDERR = 2


def answer(level: DebugLevel, recorder: str) -> None:
    """From now on. ``recorder``: path of the flight recorder's dump without the rank."""
    signal.signal(signal.SIGUSR1, _nothing)
    faulthandler.register(signal.SIGUSR1, file=_STDERR, all_threads=True, chain=True)
    if level is DebugLevel.OFF:
        return
    # The main thread may be the one that hangs, and a handler in Python runs there alone. The number of the
    # signal is written into this socket at once.
    read, write = socket.socketpair()
    write.setblocking(False)
    signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_dump, args=(read, write, recorder), name="flight recorder", daemon=True).start()


def _nothing(*_: object) -> None:
    """Else SIGUSR1 ends the process."""


def _dump(read: socket.socket, _open: socket.socket, recorder: str) -> None:
    """Whenever asked to. Without a process group there is nothing to write yet."""
    while numbers := read.recv(64):
        distributed = sys.modules.get("torch.distributed")
        if signal.SIGUSR1 not in numbers or distributed is None or not distributed.is_initialized():
            continue
        with contextlib.suppress(OSError, AttributeError, RuntimeError):
            path = Path(f"{recorder}{distributed.get_rank()}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sys.modules["torch._C._distributed_c10d"]._dump_fr_trace())  # noqa: SLF001  no public way
