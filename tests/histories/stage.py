"""Runs several processes as threads of which one moves at a time, from one port call to the next.

Who moves is decided outside, so a history is a function of its dice, and a thread is only a way to stop a
function in the middle.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmaster.core.errors import OutcomeUnknownError, UnavailableError

MOST_CALLS = 3000
"""A process that makes more does not end by itself."""


class CrashError(BaseException):
    """The process is gone; no ``except Exception`` sees it."""


class EndlessError(AssertionError):
    """A process went on and on while nothing around it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong at one port call of a process."""

    at: int
    """0-based number of the call."""
    after: bool
    """The call had its effect."""
    error: type[BaseException]


@dataclass(slots=True, eq=False)
class Process:
    """One invocation of a function."""

    name: str
    act: Callable[[], Any]
    fault: Fault | None = None
    calls: int = 0
    burst: int = 0
    """Port calls it may still make before it hands over."""
    killed: bool = False
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    worker: "_Worker | None" = None


@dataclass(slots=True)
class Stage:
    """The one baton, and threads to lend."""

    current: Process | None = None
    _back: threading.Lock = field(default_factory=threading.Lock)
    _idle: list["_Worker"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._back.acquire()

    def move(self, process: Process, *, calls: int = 1) -> None:
        """Let it make so many port calls, or come to its end."""
        assert not process.done
        if process.worker is None:
            process.worker = self._idle.pop() if self._idle else _Worker(self._back)
            process.worker.process = process
        process.burst, self.current = calls, process
        process.worker.go.release()
        self._back.acquire()
        self.current = None
        if process.done:
            self._idle.append(process.worker)
            process.worker = None
            if process.error is not None and not isinstance(process.error, CrashError):
                raise process.error

    def finish(self, process: Process) -> None:
        while not process.done:
            self.move(process, calls=MOST_CALLS)

    def kill(self, process: Process) -> None:
        """It dies before its next call, or never lived."""
        if process.worker is None:
            process.done = True
            return
        process.killed = True
        self.move(process)

    def close(self) -> None:
        for worker in self._idle:
            worker.process = None
            worker.go.release()
        self._idle.clear()

    def watched(self, port: object) -> Any:
        """The port, at whose calls processes hand over, fail and die."""
        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        wrapped = {name: self._around(method) for name, method in methods.items() if callable(method)}
        return type("Watched", (), {name: staticmethod(method) for name, method in wrapped.items()})()

    def _around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            process = self.current
            if process is None:
                return method(*args, **named)
            self._hand_over(process)
            number = process.calls
            process.calls += 1
            _fail(process, number, after=False)
            answer = method(*args, **named)
            _fail(process, number, after=True)
            return answer

        return call

    def _hand_over(self, process: Process) -> None:
        if process.calls >= MOST_CALLS:
            raise EndlessError(f"{process.name} made {process.calls} calls")
        if process.burst == 0:
            assert process.worker is not None
            self._back.release()
            process.worker.go.acquire()
        process.burst -= 1
        if process.killed:
            raise CrashError


def _fail(process: Process, number: int, *, after: bool) -> None:
    fault = process.fault
    if fault is None or fault.at != number or fault.after is not after:
        return
    if fault.error is UnavailableError and after:
        raise OutcomeUnknownError("the answer was lost")
    raise fault.error("a fault of the dice")


class _Worker:
    """A thread that runs one process after the other."""

    def __init__(self, back: threading.Lock) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.process: Process | None = None
        self._back = back
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self.go.acquire()
            process = self.process
            if process is None:
                return
            try:
                process.result = process.act()
            except BaseException as error:  # noqa: BLE001  the stage raises it where it belongs
                process.error = error
            process.done = True
            self._back.release()
