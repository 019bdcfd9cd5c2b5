"""One operating system process that runs a function, and the lines it writes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from local.deployment.wiring import Function

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_READ_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a process of a function."""

    function: Function
    clock_file: Path
    environment: Mapping[str, str]

    def start(
        self, runtime_api: str, on_lines: Callable[[list[str]], None], on_exit: Callable[[int], None]
    ) -> "FunctionProcess":
        """Start it; ``on_exit`` gets the return code after the last lines, on a thread of the process."""
        command = [sys.executable, "-P", str(_BOOTSTRAP), str(self.clock_file), self.function.handler]
        process = subprocess.Popen(
            command,
            cwd=self.function.code,
            env={**self.environment, "AWS_LAMBDA_RUNTIME_API": runtime_api},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C at the terminal is for the twin alone
        )
        return FunctionProcess(process, on_lines, on_exit)


class FunctionProcess:
    """Watches a process until it ends."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_lines: Callable[[list[str]], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._process = process
        self._on_lines = on_lines
        self._on_exit = on_exit
        self._watcher = threading.Thread(target=self._watch, name=f"function-{process.pid}", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it and what it started, without grace: Lambda gives none."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def join(self, timeout_s: float) -> None:
        self._watcher.join(timeout_s)

    def _watch(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            rest = b""
            while chunk := os.read(stdout.fileno(), _READ_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                self._tell(lines)
            self._tell([rest])
        self._on_exit(self._process.wait())

    def _tell(self, lines: list[bytes]) -> None:
        if texts := [line.decode(errors="replace") for line in lines if line]:
            self._on_lines(texts)
