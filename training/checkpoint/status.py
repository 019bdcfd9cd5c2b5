"""``status.json``: how far the job is, for whoever asks without asking the job."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from threading import Lock

from training.checkpoint.manifest import Manifest
from training.checkpoint.store import STATUS, CheckpointStore, name_of


class JobState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    PREEMPTED = "preempted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    state: JobState = JobState.RUNNING
    step: int
    steps: int
    newest: Manifest | None
    reason: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Checkpoints that this attempt passed over when it resumed, by name, and what is wrong with them."""

    @property
    def lost_steps(self) -> int:
        """Trained, and not in the newest checkpoint."""
        return max(0, self.step - (self.newest.step if self.newest else 0))

    def text(self, *, now: datetime) -> bytes:
        newest = self.newest
        document = {
            "state": self.state,
            "step": self.step,
            "steps": self.steps,
            "checkpoint": name_of(newest.step) if newest else None,
            "checkpoint_at": newest.saved_at if newest else None,
            "updated_at": instant(now),
            "lost_steps": self.lost_steps,
            "reason": self.reason,
            "carried": dict(newest.carried) if newest else {},
            "skipped": [{"checkpoint": name, "reason": told} for name, told in self.skipped.items()],
        }
        return json.dumps(document, indent=1).encode()


class StatusFile:
    """Written by the first rank alone, from the thread that saves and the one that trains."""

    def __init__(self, store: CheckpointStore, status: Status, *, clock: Callable[[], datetime]) -> None:
        self._store, self._status, self._clock = store, status, clock
        self._lock = Lock()

    def resumed(self) -> None:
        """Not all that was there was used; else the first save is soon enough."""
        if self._status.skipped:
            with self._lock:
                self._write()

    def published(self, newest: Manifest) -> None:
        """The end of a job stays its end, also when a last save was done after it was reported."""
        with self._lock:
            step = max(self._status.step, newest.step)
            self._status = replace(self._status, newest=newest, step=step)
            self._write()

    def ended(self, state: JobState, *, step: int, reason: str) -> None:
        with self._lock:
            self._status = replace(self._status, state=state, step=step, reason=reason)
            self._write()

    def _write(self) -> None:
        self._store.write(STATUS, self._status.text(now=self._clock()))


def instant(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds")
