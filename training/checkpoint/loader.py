"""Finds the newest checkpoint that can be used and loads it. Every rank calls."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.optim import Optimizer

from training.checkpoint import shards
from training.checkpoint.manifest import MANIFEST, Manifest
from training.checkpoint.places import Places
from training.checkpoint.ranks import Ranks, RanksFailedError
from training.checkpoint.saver import described, failures_of
from training.checkpoint.store import CheckpointStore
from training.checkpoint.survey import Finding, Refused, Sight, Torn, View, Whole, findings
from training.errors import CheckpointMismatchError, CheckpointReadError

_HASHED_BYTES = 256 * 2**20
"""Of a larger first shard the manifest is hashed instead: an attempt must not wait a minute for a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    store: CheckpointStore
    places: Places
    ranks: Ranks
    guard: Mapping[str, str]

    def load(self, model: nn.Module, optimizer: Optimizer) -> dict[int, Manifest]:
        """Fill both from the newest checkpoint that can be used; it and those before it, by step.

        Nothing when there is none, and nothing is written or removed here.

        Raises:
            CheckpointMismatchError: It is of another training.
            CheckpointReadError: It should be usable, and is not.
        """
        found = self._survey()
        damaged: list[Torn] = []
        for number, one in enumerate(found):
            match one:
                case Torn():
                    self._tell(f"skipping torn checkpoint {one.name}: {one.reason}")
                case Refused():
                    raise CheckpointReadError(f"checkpoint {one.name} cannot be used: {one.reason}")
                case Whole():
                    broken = self._load_one(one, model, optimizer)
                    if broken is None:
                        self._tell(f"resumed from step={one.manifest.step} {self._evidence(one)}")
                        return dict(_whole(found[number:]))
                    self._tell(f"skipping damaged checkpoint {one.name}: {broken.reason}")
                    damaged.append(broken)
        if damaged:
            # Weights may be half loaded by now, and the work of days is not thrown away by itself.
            told = "; ".join(f"{one.name}: {one.reason}" for one in damaged)
            raise CheckpointReadError(
                f"no checkpoint can be read: {told}; "
                "bring one back, or start again with another checkpoint directory"
            )
        self._tell("starting from scratch")
        return {}

    def _survey(self) -> list[Finding]:
        """The same on every rank: what the first rank of each host saw. Raises CheckpointReadError."""
        is_lookout = self.ranks.rank in self.places.lookouts
        try:
            seen = self.ranks.agreed(lambda: self._seen() if is_lookout else {})
        except RanksFailedError as error:
            raise CheckpointReadError(
                f"the checkpoints cannot be listed: {described(error.failures)}"
            ) from error
        return findings({self.places.lookouts[rank]: seen[rank] for rank in self.places.lookouts})

    def _seen(self) -> View:
        return {
            name: Sight(manifest=self.store.read(f"{name}/{MANIFEST}"), sizes=dict(self.store.sizes(name)))
            for name in self.store.checkpoints()
        }

    def _load_one(self, one: Whole, model: nn.Module, optimizer: Optimizer) -> Torn | None:
        """None when it is loaded; what is wrong with its content else."""
        _check(self.guard, one)
        try:
            shards.read(model, optimizer, self.store.reader(one.name), self.ranks.group)
        except shards.OtherTensorsError as error:
            raise CheckpointMismatchError(path=one.name, differences=error.differences) from error
        except CheckpointException as error:
            failures = failures_of(error, self.store)
            if any(failure.is_of_store for failure in failures.values()):
                # Tried again it may well be read; an older one would lose work for good.
                raise CheckpointReadError(
                    f"checkpoint {one.name} could not be read: {described(failures)}"
                ) from error
            return Torn(name=one.name, reason=described(failures))
        return None

    def _evidence(self, one: Whole) -> str:
        """A file by its place in the store, and its hash, for whoever compares it with a copy."""
        if self.ranks.rank != 0:
            return ""
        file, size = next(iter(one.manifest.files.items()))
        name = f"{one.name}/{file if size <= _HASHED_BYTES else MANIFEST}"
        return f"file={name} sha256={sha256(self.store.read(name) or b'').hexdigest()}"

    def _tell(self, line: str) -> None:
        if self.ranks.rank == 0:
            print(line, flush=True)


def _check(guard: Mapping[str, str], one: Whole) -> None:
    were = one.manifest.guard
    pairs = {key: (were.get(key, "unset"), guard.get(key, "unset")) for key in were.keys() | guard.keys()}
    if differences := {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}:
        raise CheckpointMismatchError(path=one.name, differences=differences)


def _whole(found: list[Finding]) -> Iterator[tuple[int, Manifest]]:
    for one in found:
        if isinstance(one, Whole):
            yield one.manifest.step, one.manifest
