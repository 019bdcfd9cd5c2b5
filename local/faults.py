"""Errors on demand: the next calls of an operation fail with a chosen code."""

import threading
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class _Fault:
    operation: str
    error_code: str
    times: int
    principal: str | None
    """ARN of the one caller it is for; None: for any."""


class Faults:
    """The registry behind ``POST /errors``; of several for one operation the oldest is used up first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[_Fault] = []

    def add(self, operation: str, error_code: str, times: int = 1, *, principal: str | None = None) -> None:
        """The next ``times`` calls of ``operation`` (boto3's name, of whichever service) by it fail."""
        if times < 1:
            raise ValueError(f"times must be 1 or more: {times}")
        with self._lock:
            self._faults.append(
                _Fault(operation=operation, error_code=error_code, times=times, principal=principal)
            )

    def take(self, operation: str, principal: str) -> str | None:
        """The code this call has to fail with, used up by asking."""
        with self._lock:
            for fault in self._faults:
                if fault.operation == operation and fault.principal in (None, principal):
                    fault.times -= 1
                    self._faults = [each for each in self._faults if each.times]
                    return fault.error_code
        return None

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
