"""How a process of a function is started."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.deployment.lambda_runtime.function_logs import FunctionLog
from local.deployment.wiring import Function
from local.processes import Child, Command

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_MARK = "AWS_LAMBDA_LOG_STREAM_NAME"
"""Each process has a log stream of its own, so what it starts can be found by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    function: Function
    clock_file: Path
    environment: Mapping[str, str]
    log: FunctionLog

    def start(self, runtime_api: str, on_exit: Callable[[int], None]) -> "Sandbox":
        """Start it; ``on_exit`` gets the exit code after the last line."""
        command = Command(
            argv=[sys.executable, "-P", str(_BOOTSTRAP), str(self.clock_file), self.function.handler],
            env={**self.environment, "AWS_LAMBDA_RUNTIME_API": runtime_api},
            cwd=self.function.code,
            mark=_MARK,
        )

        def ended(code: int) -> None:
            self.log.end()
            if sandbox.last_words:
                self.log.write(f"{sandbox.last_words}\n".encode())
            on_exit(code)

        sandbox = Sandbox(child=Child(command, on_output=self.log.write, on_exit=ended))
        sandbox.child.watch()
        return sandbox


@dataclass(slots=True, kw_only=True)
class Sandbox:
    """A process of a function, and what Lambda itself writes into its log when it ends it."""

    child: Child
    last_words: str = ""

    def kill(self, last_words: str = "") -> None:
        self.last_words = last_words
        self.child.kill()

    def join(self) -> None:
        self.child.join()
