"""Writes one checkpoint, from the first file to what is removed after it. Every rank calls.

A crash at any point leaves whole checkpoints and at most one without a manifest, which nobody loads.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torch.distributed.checkpoint.api import CheckpointException

from training.checkpoint import shards
from training.checkpoint.group import Failure, Places, Ranks, RanksFailedError
from training.checkpoint.hashes import digest_of
from training.checkpoint.manifest import ALGORITHM, INDEX, INDEX_COPY, MANIFEST, Manifest, sizes_of
from training.checkpoint.schedule import Retention, kept
from training.checkpoint.status import StatusFile, instant
from training.checkpoint.store import CheckpointStore, name_of
from training.errors import CheckpointSaveError, listed

_SHOWN = 3
"""Ranks with the same message, and messages: hundreds of ranks may fail, and a message is short."""


@dataclass(slots=True, kw_only=True)
class Saver:
    store: CheckpointStore
    places: Places
    ranks: Ranks
    """For the thread that saves, whichever it is."""
    guard: Mapping[str, str]
    keep: Retention
    status: StatusFile
    clock: Callable[[], datetime]
    whole: Mapping[int, Manifest]
    """By step, what may be loaded; all else in the store is remains. Replaced, never changed: the thread
    that trains reads it."""

    def save(self, step: int, state: shards.State, carried: Mapping[str, float]) -> None:
        """Raises CheckpointSaveError on all ranks; what was there before is then still there."""
        name = name_of(step)
        try:
            manifest = self._write(step, state, carried)
        except (CheckpointException, RanksFailedError) as error:
            self._clear_after_failure(name)
            raise CheckpointSaveError(self._told(name, failures_of(error, self.store))) from error
        self.whole = {**self.whole, step: manifest}
        stay = kept(self.whole, self.keep)
        self.whole = {one: manifest for one, manifest in self.whole.items() if one in stay}
        try:
            self.ranks.agreed(self._clear_remains)
        except RanksFailedError as error:
            told = f"checkpoint {name} is saved, and older ones could not be removed"
            raise CheckpointSaveError(f"{told}: {described(error.failures)}") from error

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
        )
        self.store.write(f"{name}/{MANIFEST}", manifest.text())
        self.status.published(manifest)
        return manifest

    def _clear_before(self) -> None:
        """What attempts that were killed have left, on this host."""
        if self.ranks.rank in self.places.lookouts:
            self.store.abort_uploads()
        self._clear_remains()

    def _clear_remains(self) -> None:
        """Of the checkpoints on this host, those that are not to be kept, torn ones included."""
        if self.ranks.rank not in self.places.lookouts:
            return
        stay = {name_of(step) for step in self.whole}
        for name in sorted(set(self.store.checkpoints()) - stay):
            self.store.remove(name)

    def _clear_after_failure(self, name: str) -> None:
        """Half a checkpoint on a full disk would leave no room to say why the job failed."""
        if self.ranks.rank not in self.places.lookouts:
            return
        try:
            self.store.remove(name)
        except Exception as error:  # noqa: BLE001  the failure of the save is what is raised
            print(f"the half of checkpoint {name} stays: {error}", flush=True)

    def _told(self, name: str, failures: Mapping[int, Failure]) -> str:
        newest = f"; the newest whole one is {name_of(max(self.whole))}" if self.whole else ""
        return f"checkpoint {name} could not be saved: {described(failures)}{newest}"


def failures_of(error: CheckpointException | RanksFailedError, store: CheckpointStore) -> dict[int, Failure]:
    """By rank, in words."""
    if isinstance(error, RanksFailedError):
        return error.failures
    return {rank: judged(cause, store) for rank, (cause, _) in error.failures.items()}


def judged(error: BaseException, store: CheckpointStore) -> Failure:
    explained = store.explained(error)
    return Failure(message=explained or f"{type(error).__name__}: {error}", is_of_store=explained is not None)


def described(failures: Mapping[int, Failure]) -> str:
    """Ranks that say the same are named together; of many messages the first few will do."""
    by_message: dict[str, list[str]] = {}
    for rank, failure in sorted(failures.items()):
        by_message.setdefault(failure.message, []).append(str(rank))
    told = [
        f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks, most=_SHOWN)}: {one}"
        for one, ranks in by_message.items()
    ]
    return listed(told, most=_SHOWN, between="; ")
