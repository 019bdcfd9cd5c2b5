"""Messages that can reach a running job, and the queue through which its thread gets them."""

import queue
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from local.clock import TwinClock
from local.sagemaker.statuses import Secondary


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    end: Secondary
    """Status of the job when it has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    reason: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The spot instances are taken away."""


@dataclass(frozen=True, slots=True)
class WindowClosed:
    """The window of its training plan closes: its instances are ended."""


@dataclass(frozen=True, slots=True)
class RoomOnPlan:
    """Instances of its training plan may have become free."""


@dataclass(frozen=True, slots=True)
class HostFailed:
    """The first host has failed, and others still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """No host runs any more."""

    code: int
    """0 when none has failed."""


Message: TypeAlias = Stop | Fail | Interrupt | WindowClosed | RoomOnPlan | HostFailed | Exited
Kinds: TypeAlias = tuple[type[Message], ...]


class _Tick:
    """A wait is over; each wait has its own, and one that comes too late is dropped."""


class _Close:
    """The twin ends."""


class ClosedError(Exception):
    """The twin ends; nothing more is to be done for the job."""


class Mailbox:
    """A queue on which one thread waits and any may post.

    A message counts as activity of the clock until the next wait.
    """

    def __init__(self, clock: TwinClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._has_reader = True
        self._queue: queue.SimpleQueue[tuple[object, ExitStack]] = queue.SimpleQueue()
        self._in_hand = self._busy()

    def post(self, message: Message) -> None:
        self._put(message)

    def close(self) -> None:
        self._put(_Close())

    def wait(
        self, heeded: Kinds, wait: timedelta | None = None, *, settle_seconds: float = 0.0
    ) -> Message | None:
        """Return the next message of a heeded kind and drop the others; None once ``wait`` has passed.

        ``settle_seconds`` of real time at the beginning count as activity too: what a process does at once
        is done before a manual clock goes on.

        Raises:
            ClosedError: the mailbox was closed.
        """
        tick = _Tick()
        if wait is not None:
            self._clock.call_later(wait, lambda: self._put(tick))
        while (message := self._next(settle_seconds)) is not tick:
            if isinstance(message, _Close):
                raise ClosedError
            if isinstance(message, heeded):
                return message
        return None

    def leave(self) -> None:
        """Drop all messages from now on, as the reader is gone."""
        with self._lock:
            self._has_reader = False
        self._in_hand.close()
        while not self._queue.empty():
            self._queue.get()[1].close()

    def _next(self, settle_seconds: float) -> object:
        try:
            message, busy = self._queue.get(timeout=settle_seconds)
        except queue.Empty:
            self._in_hand.close()
            message, busy = self._queue.get()
        self._in_hand.close()
        self._in_hand = busy
        return message

    def _put(self, message: object) -> None:
        with self._lock:
            if self._has_reader:
                self._queue.put((message, self._busy()))

    def _busy(self) -> ExitStack:
        busy = ExitStack()
        busy.enter_context(self._clock.activity.busy("training job"))
        return busy
