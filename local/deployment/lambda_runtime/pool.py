"""The processes of one function: grown on demand, one invocation each at a time."""

import itertools
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from local.deployment.lambda_runtime.invocation import Fault, Invocation, Outcome

MAX_PROCESSES = 4
"""Most processes of one function at once: AWS would start more, a laptop should not."""
INIT_SECONDS = 30.0
"""Seconds after which a process that has not asked for work is ended; Lambda's own limit is 10 s."""
MAX_RESPONSE_BYTES = 6 * 1024 * 1024
"""Lambda quota for a synchronous response."""


class Process(Protocol):
    def kill(self, last_words: str = "") -> None:
        """Kill the process; ``last_words`` is the last line of its log."""
        ...

    def join(self) -> None: ...


Start = Callable[[str, Callable[[int], None]], Process]
"""(instance id, what to call with the return code) -> the process, started."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Instance:
    instance_id: str
    process: Process
    ready: bool = False
    """Whether it has asked for work once."""
    current: Invocation | None = None
    init_error: Outcome | None = None
    launched: float = field(default_factory=time.monotonic)


class FunctionPool:
    """Hands invocations to processes and their answers back."""

    def __init__(
        self,
        *,
        timeout_s: float,
        start: Start,
        max_processes: int = MAX_PROCESSES,
        init_s: float = INIT_SECONDS,
    ) -> None:
        self._timeout_s = timeout_s
        self._start = start
        self._max_processes = max_processes
        self._init_s = init_s
        self._changed = threading.Condition()
        self._queue: deque[Invocation] = deque()
        self._instances: dict[str, _Instance] = {}
        self._numbers = itertools.count()
        self._closed = False
        self.killed = 0
        """Invocations that were ended by their timeout."""

    def invoke(self, payload: bytes) -> Outcome:
        """Run the function once; waits for a free process and for the answer."""
        invocation = Invocation(request_id=str(uuid.uuid4()), payload=payload)
        with self._changed:
            if self._closed:
                return _gone(invocation)
            self._queue.append(invocation)
            self._grow()
            self._changed.notify_all()
        while not invocation.started.wait(self._init_s):
            self._end_stuck()
        if not invocation.done.wait(self._timeout_s):
            self._time_out(invocation)
        assert invocation.outcome is not None
        return invocation.outcome

    def warm(self) -> None:
        """Make one process ready for the first call; return when it is, or cannot be."""
        with self._changed:
            if self._instances or self._closed:
                return
            self._launch()
            self._changed.wait_for(self._all_ready, self._init_s)

    def _all_ready(self) -> bool:
        return all(instance.ready for instance in self._instances.values())

    def next(self, instance_id: str) -> Invocation | None:
        """Give the process its next invocation; blocks until there is one, None when it shall end."""
        with self._changed:
            instance = self._instances.get(instance_id)
            if instance is None:
                return None
            instance.ready = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._queue or instance_id not in self._instances)
            if instance_id not in self._instances:
                return None
            instance.current = self._queue.popleft()
            instance.current.started.set()
            return instance.current

    def answer(self, instance_id: str, request_id: str, outcome: Outcome) -> bool:
        """Take the answer of a process; false when it is not the one that is waited for."""
        with self._changed:
            instance = self._instances.get(instance_id)
            if instance is None or instance.current is None or instance.current.request_id != request_id:
                return False
            invocation, instance.current = instance.current, None
        invocation.finish(_within_limit(outcome))
        return True

    def init_failed(self, instance_id: str, outcome: Outcome) -> None:
        """Note that a process cannot start; it ends by itself after that."""
        with self._changed:
            if instance := self._instances.get(instance_id):
                instance.init_error = outcome

    def close(self) -> None:
        with self._changed:
            self._closed = True
            instances = list(self._instances.values())
            self._instances.clear()
            waiting = [*self._queue, *(instance.current for instance in instances if instance.current)]
            self._changed.notify_all()
        for instance in instances:
            instance.process.kill()
        for invocation in waiting:
            invocation.finish(_gone(invocation))
        for instance in instances:
            instance.process.join()

    def _grow(self) -> None:
        """Start a process if work waits that no idle or starting process will take."""
        idle = sum(1 for instance in self._instances.values() if instance.current is None)
        if len(self._queue) > idle and len(self._instances) < self._max_processes:
            self._launch()

    def _launch(self) -> None:
        instance_id = str(next(self._numbers))
        process = self._start(instance_id, lambda code: self._exited(instance_id, code))
        self._instances[instance_id] = _Instance(instance_id=instance_id, process=process)

    def _exited(self, instance_id: str, code: int) -> None:
        with self._changed:
            instance = self._instances.pop(instance_id, None)
            if instance is None:  # the pool ended it and has answered already
                return
            invocation = instance.current
            if invocation is None and not instance.ready and self._queue:
                invocation = self._queue.popleft()  # that which the process was started for
            self._grow()
            self._changed.notify_all()
        if invocation is not None:
            message = (
                f"RequestId: {invocation.request_id} Error: Runtime exited with error: exit status {code}"
            )
            invocation.finish(instance.init_error or Outcome.of_fault(Fault.EXITED, message))

    def _time_out(self, invocation: Invocation) -> None:
        with self._changed:
            late = [instance for instance in self._instances.values() if instance.current is invocation]
            for instance in late:
                del self._instances[instance.instance_id]
            self.killed += len(late)
            self._grow()
        for instance in late:
            message = f"{invocation.request_id} Task timed out after {self._timeout_s:.2f} seconds"
            invocation.finish(Outcome.of_fault(Fault.TIMED_OUT, message))
            instance.process.kill(message)
        invocation.done.wait()  # if none was late, the answer is just being given

    def _end_stuck(self) -> None:
        now = time.monotonic()
        with self._changed:
            stuck = [
                instance
                for instance in self._instances.values()
                if not instance.ready and now - instance.launched > self._init_s
            ]
        for instance in stuck:
            instance.process.kill()


def _gone(invocation: Invocation) -> Outcome:
    return Outcome.of_fault(Fault.EXITED, f"RequestId: {invocation.request_id} Error: the twin ends")


def _within_limit(outcome: Outcome) -> Outcome:
    if len(outcome.payload) <= MAX_RESPONSE_BYTES:
        return outcome
    message = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
    return Outcome.of_fault(Fault.RESPONSE_TOO_LARGE, message)
