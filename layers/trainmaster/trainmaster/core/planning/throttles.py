"""How many tasks of an array may hold instances at once, while a plan gives them away."""

from collections import Counter
from dataclasses import dataclass, field

from trainmaster.core.arrays.model import Array
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """An array as it must still be when a task of it is claimed."""

    array: str
    at_most: int | None
    """Tasks that may run at once, with the claimed one; None: as many as fit."""


@dataclass(kw_only=True)
class Throttles:
    """Counts the tasks that a plan starts against the throttles of their arrays."""

    arrays: dict[str, Array]
    started: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Throttles":
        return cls(arrays={array.name: array for array in snapshot.arrays})

    def refusal(self, job: WaitingJob) -> Reason | None:
        """Return why a task may not start now, whatever is free; None if it may, or is no task."""
        array = self.arrays.get(job.array or "")
        if array is None:
            return None
        if array.held:
            return Reason(code=ReasonCode.HELD, message=array.held_because or f"array {array.name} is held")
        running = array.jobs.running + self.started[array.name]
        if array.at_most is None or running < array.at_most:
            return None
        message = throttle_text(array.name, running, array.at_most)
        return Reason(code=ReasonCode.ARRAY_LIMIT, message=message)

    def throttle(self, job: WaitingJob) -> Throttle | None:
        """Count a start; return what must still hold when the task is claimed, None if it is no task."""
        array = self.arrays.get(job.array or "")
        if array is None:
            return None
        self.started[array.name] += 1
        return Throttle(array=array.name, at_most=array.at_most)


def throttle_text(array: str, running: int, at_most: int) -> str:
    """Say that an array's throttle keeps further tasks from starting."""
    return f"{running} tasks of array {array} run, and at most {at_most} may at once"
