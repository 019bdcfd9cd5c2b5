"""Finds the newest checkpoint that can be used and loads it. Every rank calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata
from torch.optim import Optimizer

from training.preemptible import CheckpointMismatchError, CheckpointReadError
from training.preemptible.checkpoint import shards
from training.preemptible.checkpoint.group import (
    Failure,
    Places,
    Ranks,
    RanksFailedError,
    described,
    failures_of,
    found_places,
)
from training.preemptible.checkpoint.hashes import Seconds, has_hashes, timed
from training.preemptible.checkpoint.manifest import (
    INDEX_COPY,
    MANIFEST,
    Finding,
    Manifest,
    Refused,
    Torn,
    Whole,
    findings,
    is_work_lost,
    view_of,
)
from training.preemptible.checkpoint.shards import verified_index
from training.preemptible.checkpoint.store import CheckpointStore

_HASHED_BYTES = 16 * 2**20
"""The largest first shard, in bytes, that is hashed for the line about the resume; else the manifest is."""


def newest_manifest(store: CheckpointStore) -> Manifest | None:
    """Read what the newest whole checkpoint says of itself, before there is a model to load it into.

    Every rank calls. Returns None if there is no checkpoint. Its content is verified when it is loaded; until
    then it may turn out to be damaged, and an older one is loaded instead.

    Raises:
        CheckpointReadError: The store does not answer.
    """
    ranks = Ranks(store)
    loader = Loader(store=store, places=found_places(ranks, store), ranks=ranks, guard={})
    return next((finding.manifest for finding in loader.survey() if isinstance(finding, Whole)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    whole: Mapping[int, Manifest]
    """The checkpoint that was loaded and those before it, by step; empty if there was none."""
    skipped: Mapping[str, str]
    """The reason why each checkpoint was passed over, by its name."""
    seconds: Seconds
    """Seconds of this rank by phase: look, plan, read, verify, apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    store: CheckpointStore
    places: Places
    ranks: Ranks
    guard: Mapping[str, str]

    def load(self, model: nn.Module, optimizer: Optimizer) -> Loaded:
        """Fill both from the newest checkpoint that can be used.

        Nothing is written or removed here.

        Raises:
            CheckpointMismatchError: It is of another training.
            CheckpointReadError: It should be usable, and is not.
        """
        seconds: Seconds = {}
        with timed(seconds, "look"):
            checkpoints = self.survey()
        torn: list[Torn] = []
        for number, checkpoint in enumerate(checkpoints):
            match checkpoint:
                case Torn():
                    torn.append(checkpoint)
                case Refused():
                    raise CheckpointReadError(
                        f"checkpoint {checkpoint.name} cannot be used: {checkpoint.reason}"
                    )
                case Whole():
                    read = self._load_one(checkpoint, model, optimizer)
                    if not isinstance(read, Torn):
                        self._tell(
                            f"resumed from step={checkpoint.manifest.step} {self._evidence(checkpoint)}"
                        )
                        skipped = {passed.name: passed.reason for passed in torn}
                        return Loaded(
                            whole=dict(_whole(checkpoints[number:])), skipped=skipped, seconds=seconds | read
                        )
                    torn.append(read)
            self._tell(f"skipping torn checkpoint {checkpoint.name}: {torn[-1].reason}")
        if is_work_lost(torn):
            # Weights may be half loaded by now, and the work of days is not thrown away by itself.
            problems = "; ".join(f"{passed.name}: {passed.reason}" for passed in torn)
            raise CheckpointReadError(
                f"no checkpoint can be read: {problems}; "
                "bring one back, or start again with another checkpoint directory"
            )
        self._tell("starting from scratch")
        return Loaded(whole={}, skipped={}, seconds=seconds)

    def survey(self) -> list[Finding]:
        """List what is there, the same on every rank: what the first rank of each host saw.

        Raises:
            CheckpointReadError: The store does not answer.
        """
        is_lookout = self.ranks.rank in self.places.lookouts
        try:
            seen = self.ranks.agreed(lambda: view_of(self.store) if is_lookout else {})
        except RanksFailedError as error:
            raise CheckpointReadError(
                f"the checkpoints cannot be listed: {described(error.failures)}"
            ) from error
        return findings({self.places.lookouts[rank]: seen[rank] for rank in self.places.lookouts})

    def _load_one(self, checkpoint: Whole, model: nn.Module, optimizer: Optimizer) -> Seconds | Torn:
        """Load one checkpoint.

        Return the seconds by phase, or what is wrong if its content cannot be loaded.
        """
        _check(self.guard, checkpoint)
        seconds: Seconds = {}
        with timed(seconds, "plan"):
            index = self._index(checkpoint)
        if isinstance(index, Torn):
            return index
        if not has_hashes(index):
            self._tell(
                f"checkpoint {checkpoint.name} has no hashes, so its content is not verified; "
                "the next one has"
            )
        read = self._read(checkpoint, self.store, index, model, optimizer)
        if isinstance(read, Torn) and (original := self.store.original):
            self._tell(
                f"checkpoint {checkpoint.name} is read again, without the hosts' copies: {read.reason}"
            )
            read = self._read(checkpoint, original, index, model, optimizer)
        if not isinstance(read, Torn):
            read["plan"] += seconds["plan"]
        return read

    def _index(self, checkpoint: Whole) -> Metadata | Torn:
        """Read torch's index, verified before a byte of it is decoded."""
        read: list[Metadata] = []  # it stays on this rank; the others only hear that it is there
        try:
            self.ranks.agreed(lambda: read.append(self._read_index(checkpoint)))
        except RanksFailedError as error:
            return self._torn(checkpoint, error, error.failures)
        return read[0]

    def _read_index(self, checkpoint: Whole) -> Metadata:
        return verified_index(self.store.read(f"{checkpoint.name}/{INDEX_COPY}") or b"", checkpoint.manifest)

    def _read(
        self,
        checkpoint: Whole,
        store: CheckpointStore,
        index: Metadata,
        model: nn.Module,
        optimizer: Optimizer,
    ) -> Seconds | Torn:
        seconds: Seconds = {}
        try:
            reader = store.reader(checkpoint.name, index, seconds)
            shards.read(model, optimizer, reader, self.ranks.group, seconds)
        except shards.OtherTensorsError as error:
            raise CheckpointMismatchError(path=checkpoint.name, differences=error.differences) from error
        except CheckpointException as error:
            return self._torn(checkpoint, error, failures_of(error, self.store))
        return seconds

    def _torn(self, checkpoint: Whole, error: BaseException, failures: Mapping[int, Failure]) -> Torn:
        if any(failure.is_of_store for failure in failures.values()):
            # Tried again it may well be read; an older one would lose work for good.
            raise CheckpointReadError(
                f"checkpoint {checkpoint.name} could not be read: {described(failures)}"
            ) from error
        return Torn(name=checkpoint.name, reason=described(failures))

    def _evidence(self, checkpoint: Whole) -> str:
        """Name a file by its place in the store, with its hash, so that it can be compared with a copy."""
        if self.ranks.rank != 0:
            return ""
        file, size = next(iter(checkpoint.manifest.files.items()))
        name = f"{checkpoint.name}/{file if size <= _HASHED_BYTES else MANIFEST}"
        return f"file={name} sha256={sha256(self.store.read(name) or b'').hexdigest()}"

    def _tell(self, line: str) -> None:
        if self.ranks.rank == 0:
            print(line, flush=True)


def _check(guard: Mapping[str, str], checkpoint: Whole) -> None:
    were = checkpoint.manifest.guard
    pairs = {key: (were.get(key, "unset"), guard.get(key, "unset")) for key in were.keys() | guard.keys()}
    if differences := {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}:
        raise CheckpointMismatchError(path=checkpoint.name, differences=differences)


def _whole(newest_first: list[Finding]) -> Iterator[tuple[int, Manifest]]:
    for finding in newest_first:
        if isinstance(finding, Whole):
            yield finding.manifest.step, finding.manifest
