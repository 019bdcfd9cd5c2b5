"""One invocation of a function and how it ends."""

import json
import threading
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """Error types that Lambda itself reports (Lambda Developer Guide, Runtime API)."""

    EXITED = "Runtime.ExitError"
    TIMED_OUT = "Sandbox.Timedout"
    RESPONSE_TOO_LARGE = "Function.ResponseSizeTooLarge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The caller's answer; an error of the function is a payload too."""

    payload: bytes
    failed: bool = False

    @classmethod
    def of_fault(cls, fault: Fault, message: str) -> "Outcome":
        payload = json.dumps({"errorType": fault, "errorMessage": message}).encode()
        return cls(payload=payload, failed=True)


@dataclass(slots=True, kw_only=True, eq=False)
class Invocation:
    request_id: str
    payload: bytes
    started: threading.Event = field(default_factory=threading.Event)
    """Set when a process has it, or when none will."""
    done: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None

    def finish(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.started.set()
        self.done.set()
