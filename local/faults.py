"""Errors on demand: the next calls of an operation fail with a chosen code."""

import threading
from dataclasses import dataclass

from local.denials import Denials


@dataclass(slots=True, kw_only=True)
class _Fault:
    error_code: str
    times: int
    """Number of further calls that fail."""


class Faults:
    """The registry behind ``POST /errors``: one fault for each operation and caller, the last one set."""

    def __init__(self) -> None:
        self.denials = Denials()
        self._lock = threading.Lock()
        self._faults: dict[tuple[str, str | None], _Fault] = {}

    def set(self, operation: str, error_code: str, times: int = 1, *, principal: str | None = None) -> None:
        """Let the next ``times`` calls of ``operation`` (boto3's name, of whichever service) by it fail."""
        if times < 1:
            raise ValueError(f"times must be 1 or more: {times}")
        with self._lock:
            self._faults[operation, principal] = _Fault(error_code=error_code, times=times)

    def end(self, operation: str, *, principal: str | None = None) -> None:
        """Let calls of the operation succeed again; with a caller, only what was set for this one ends."""
        with self._lock:
            for known in list(self._faults):
                if known[0] == operation and principal in (None, known[1]):
                    del self._faults[known]

    def take(self, operation: str, principal: str) -> str | None:
        """Return the code this call must fail with, and use it up; faults set for the caller go first."""
        with self._lock:
            for key in ((operation, principal), (operation, None)):
                fault = self._faults.get(key)
                if fault is not None:
                    fault.times -= 1
                    if not fault.times:
                        del self._faults[key]
                    return fault.error_code
        return None

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
