"""Writes one checkpoint, from the first file to what is removed after it, and ``status.json`` beside them.

A crash at any point leaves whole checkpoints and at most one without a manifest, which is never loaded.
``status.json`` says how far the job is, to readers that cannot ask the job itself.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import Any

from torch.distributed.checkpoint.api import CheckpointException

from training.preemptible import CheckpointSaveError
from training.preemptible.checkpoint import shards
from training.preemptible.checkpoint.group import (
    Failure,
    Places,
    Ranks,
    RanksFailedError,
    described,
    failures_of,
)
from training.preemptible.checkpoint.hashes import digest_of
from training.preemptible.checkpoint.manifest import (
    ALGORITHM,
    INDEX,
    INDEX_COPY,
    MANIFEST,
    Manifest,
    sizes_of,
)
from training.preemptible.checkpoint.retention import Retention, kept
from training.preemptible.checkpoint.store import STATUS, CheckpointStore, name_of


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
        """Count the steps that were trained and are not in the newest checkpoint."""
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
    """``status.json``, which the first rank alone writes, from the thread that saves and the one training."""

    def __init__(self, store: CheckpointStore, status: Status, *, clock: Callable[[], datetime]) -> None:
        self._store, self._status, self._clock = store, status, clock
        self._lock = Lock()

    def resumed(self) -> None:
        """Write the status if checkpoints were passed over; else the first save writes it soon enough."""
        if self._status.skipped:
            with self._lock:
                self._write()

    def published(self, newest: Manifest) -> None:
        """Record a new checkpoint.

        A job that has ended stays ended, even if its last save is published later.
        """
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


@dataclass(slots=True, kw_only=True)
class Saver:
    """Saves checkpoints and removes old ones; every rank calls."""

    store: CheckpointStore
    places: Places
    ranks: Ranks
    """Ranks of the thread that saves; the thread that trains has its own, so that messages do not mix."""
    guard: Mapping[str, str]
    notes: Mapping[str, str]
    keep: Retention
    status: StatusFile
    clock: Callable[[], datetime]
    whole: Mapping[int, Manifest]
    """Checkpoints that may be loaded, by step; all else in the store may be removed. The mapping is replaced
    and never changed in place: the thread that trains reads it."""

    def save(self, step: int, state: shards.State, carried: Mapping[str, float]) -> None:
        """Save one checkpoint. Raises CheckpointSaveError on all ranks.

        Earlier checkpoints are then still there.
        """
        name = name_of(step)
        try:
            manifest = self._write(step, state, carried)
        except (CheckpointException, RanksFailedError) as error:
            self._clear_after_failure(name)
            raise CheckpointSaveError(self._told(name, failures_of(error, self.store))) from error
        self.whole = {**self.whole, step: manifest}
        stay = kept(self.whole, self.keep)
        self.whole = {
            whole_step: manifest for whole_step, manifest in self.whole.items() if whole_step in stay
        }
        try:
            self.ranks.agreed(self._clear_remains)
        except RanksFailedError as error:
            problem = f"checkpoint {name} is saved, and older ones could not be removed"
            raise CheckpointSaveError(f"{problem}: {described(error.failures)}") from error

    def _write(self, step: int, state: shards.State, carried: Mapping[str, float]) -> Manifest:
        began = time.monotonic()
        self.ranks.agreed(self._clear_before)
        shard_places = shards.write(state, self.store.writer(name_of(step)), self.ranks.group)
        # The manifest comes when the files of all ranks are durable.
        (manifest, *_) = self.ranks.agreed(
            lambda: self._publish(step, shard_places, carried, began) if self.ranks.rank == 0 else None
        )
        assert manifest is not None
        return manifest

    def _publish(
        self, step: int, shard_places: Mapping[Any, Any], carried: Mapping[str, float], began: float
    ) -> Manifest:
        name = name_of(step)
        index = self.store.read(f"{name}/{INDEX}")
        assert index is not None
        self.store.write(f"{name}/{INDEX_COPY}", index)
        manifest = Manifest(
            step=step,
            world_size=self.ranks.size,
            hosts=len(self.places.machines),
            guard=dict(self.guard),
            carried=dict(carried),
            files=sizes_of(shard_places) | {INDEX_COPY: len(index)},
            seconds=round(time.monotonic() - began, 3),
            saved_at=instant(self.clock()),
            hashes={"algorithm": ALGORITHM, INDEX_COPY: digest_of(index)},
            notes=dict(self.notes),
        )
        self.store.write(f"{name}/{MANIFEST}", manifest.text())
        self.status.published(manifest)
        return manifest

    def _clear_before(self) -> None:
        """Remove what killed attempts have left on this host."""
        if self.ranks.rank in self.places.lookouts:
            self.store.abort_uploads()
        self._clear_remains()

    def _clear_remains(self) -> None:
        """Remove the checkpoints on this host that are not to be kept, torn ones included."""
        if self.ranks.rank not in self.places.lookouts:
            return
        stay = {name_of(step) for step in self.whole}
        for name in sorted(set(self.store.checkpoints()) - stay):
            self.store.remove(name)

    def _clear_after_failure(self, name: str) -> None:
        """Remove the half-written checkpoint.

        On a full disk it would leave no space to say why the job failed.
        """
        if self.ranks.rank not in self.places.lookouts:
            return
        try:
            self.store.remove(name)
        except Exception as error:  # noqa: BLE001  the failure of the save is what is raised
            print(f"the half of checkpoint {name} stays: {error}", flush=True)

    def _told(self, name: str, failures: Mapping[int, Failure]) -> str:
        newest = f"; the newest whole one is {name_of(max(self.whole))}" if self.whole else ""
        return f"checkpoint {name} could not be saved: {described(failures)}{newest}"
