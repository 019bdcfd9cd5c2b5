"""Data whose order and random numbers follow from a seed, the epoch and the place in it.

A loader as people write it draws its order, its masks and its augmentations from the numbers that dropout
draws from too, so an attempt that skips what was seen would see other data afterwards. ``PlacedData`` changes
a DataLoader in place: what it yields at a place of an epoch is then the same in every attempt, whether the
batches before were made or skipped, and making it draws no number from the training's own.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from training.adapters.random_numbers import Aside, mixed

_REMEMBERED = 4096
"""Digests of the newest batches: workers take batches from a sampler ahead of the training."""


class PlacedData:
    """One torch DataLoader, changed so that it can be entered anywhere in an epoch.

    Args:
        loader: With a batch sampler over indices, or over an IterableDataset.
        seed: The same on all ranks and in all attempts.
        rank: Of those that share the data; each draws other masks and augmentations.
        generator_seeds: Those of the attempt before, by ``generator_seeds``; empty: the loader's own now.
    """

    def __init__(
        self, loader: Any, *, seed: int, rank: int = 0, generator_seeds: tuple[int, ...] = ()
    ) -> None:
        self._loader, self._seed = loader, seed
        if (earlier := vars(loader).get("placed_data")) is not None:
            earlier.undo()
        self._before = {
            name: getattr(loader, name) for name in ("batch_sampler", "dataset", "collate_fn", "generator")
        }
        loader.placed_data = self
        self._parts = _parts_of(loader)
        self._generators = _generators_in([*self._parts, loader])
        own = tuple(generator.initial_seed() for generator in self._generators)
        self.generator_seeds = generator_seeds or own
        self._batches: _PlacedBatches | None = None
        self._stream: _PlacedStream | None = None
        for part in self._parts:
            if isinstance(getattr(part, "initial_seed", None), int):  # Accelerate's SeedableRandomSampler
                part.initial_seed = seed
        self._own: torch.Generator | None = None
        if loader.generator is None:  # its workers' seeds would come from the training's numbers
            self._own = loader.generator = torch.Generator()
        if isinstance(loader.dataset, IterableDataset):
            self._place_stream(rank)
        elif loader.batch_sampler is not None:
            self._place_items(rank)

    def digest_after(self, seen: int) -> int | None:
        """Return a number that tells orders of the epoch's first batches apart; None if it is not known."""
        return None if self._batches is None else self._batches.digest_after(seen)

    def undo(self) -> None:
        """Make the loader what it was."""
        _replace(self._loader, **self._before)

    @property
    def can_skip_unread(self) -> bool:
        """Whether ``begin`` with ``seen`` skips; a stream must be read to skip."""
        return self._batches is not None

    def begin(self, epoch: int, *, seen: int = 0, expected: tuple[int, int | None] | None = None) -> None:
        """Call before the loader is iterated.

        Args:
            epoch: From 0.
            seen: Batches at the beginning of the epoch that are left out, where ``can_skip_unread``.
            expected: (batches, their ``digest_after``) of the attempt before, with whose order this one's is
                compared; ValueError comes in the iteration where they differ.
        """
        for part in self._parts:
            if callable(set_epoch := getattr(part, "set_epoch", None)):
                set_epoch(epoch)
        for number, (generator, seed) in enumerate(zip(self._generators, self.generator_seeds, strict=False)):
            generator.manual_seed(mixed("generator", self._seed, seed, number, epoch))
        if self._own is not None:
            self._own.manual_seed(mixed("loader", self._seed, epoch))
        if self._batches is not None:
            numbers = Aside(mixed("order", self._seed, epoch))
            self._batches.begin(epoch, seen, numbers, expected=expected)
        if self._stream is not None:
            self._stream.numbers = Aside(mixed("stream", self._seed, epoch))

    def _place_items(self, rank: int) -> None:
        self._batches = _PlacedBatches(self._loader.batch_sampler)
        items = _PlacedItems(
            self._loader.dataset, self._loader.collate_fn, seed=mixed("items", self._seed, rank)
        )
        _replace(self._loader, batch_sampler=self._batches, dataset=items, collate_fn=_as_it_is)

    def _place_stream(self, rank: int) -> None:
        self._stream = _PlacedStream(self._loader.dataset, Aside(mixed(self._seed, rank)))
        _replace(
            self._loader,
            dataset=self._stream,
            collate_fn=_PlacedCollate(self._loader.collate_fn, self._stream),
        )


def own_seed(loader: Any) -> int:
    """Read the seed that a loader's sampler was given, else the one that torch was given."""
    seeds = (getattr(part, "initial_seed", None) for part in _parts_of(loader))
    return next((seed for seed in seeds if isinstance(seed, int)), torch.initial_seed())


def workers_of(loader: Any) -> int | None:
    """Read how many workers make batches of a stream; None where they cannot change its order."""
    return loader.num_workers if isinstance(getattr(loader, "dataset", None), IterableDataset) else None


class _Placed(list[Any]):
    """Indices of one batch, and where it is in which epoch; workers get it with them."""

    place: tuple[int, int] = (0, 0)


class _PlacedBatches:
    """A batch sampler that draws from numbers of its own, skips, and tells what it gave out.

    It answers for all else as the one inside.
    """

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._epoch, self._seen, self._numbers = 0, 0, Aside(0)
        self._digests: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._expected: tuple[int, int | None] | None = None

    def begin(
        self, epoch: int, seen: int, numbers: Aside, *, expected: tuple[int, int | None] | None
    ) -> None:
        self._epoch, self._seen, self._numbers, self._expected = epoch, seen, numbers, expected
        self._digests.clear()

    def digest_after(self, seen: int) -> int | None:
        return dict(self._digests).get(seen)

    def __iter__(self) -> Iterator[_Placed]:
        epoch, seen, numbers, digest = self._epoch, self._seen, self._numbers, 0
        with numbers.taken():
            inner = iter(self._batches)
        at = 0
        while True:
            with numbers.taken():
                indices = next(inner, None)
            if indices is None:
                return
            at += 1
            batch = _Placed(indices)
            batch.place = (epoch, at)
            digest = zlib.crc32(repr(list(batch)).encode(), digest)
            self._digests.append((at, digest))
            self._check(at, digest)
            if at > seen:
                yield batch

    def _check(self, at: int, digest: int) -> None:
        if self._expected is not None and at == self._expected[0] and digest != (self._expected[1] or digest):
            sampler = type(getattr(self._batches, "sampler", self._batches)).__name__
            raise ValueError(
                f"the first {at} batches of this epoch are not those that the attempt before has seen, so "
                f"going on would show samples twice: {sampler} must give one order for one epoch in every "
                "attempt; seed it by its set_epoch(epoch), not by numbers of its own"
            )

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # else copying it would never end
        return getattr(self._batches, name)


class _PlacedItems(Dataset[Any]):
    """Makes a whole batch, in whichever process, from numbers that follow from its place."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any], *, seed: int) -> None:
        self._dataset, self._collate, self._seed = dataset, collate, seed

    def __getitems__(self, batch: list[int]) -> Any:
        if not isinstance(batch, _Placed):
            return self._made(batch)
        with Aside(mixed(self._seed, *batch.place)).taken():
            return self._made(list(batch))

    def _made(self, indices: list[int]) -> Any:
        if callable(fetch := getattr(self._dataset, "__getitems__", None)):
            return self._collate(fetch(indices))
        return self._collate([self._dataset[index] for index in indices])

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


class _PlacedStream(IterableDataset[Any]):
    """A stream that draws from numbers of its own, from the first sample of a batch until it is collated.

    A worker has a process of its own, whose numbers follow from the loader's generator: there it only passes
    the samples on.
    """

    def __init__(self, dataset: Any, numbers: Aside) -> None:
        self._dataset, self.numbers = dataset, numbers

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            yield from self._dataset
            return
        numbers, inner = self.numbers, None
        while True:
            numbers.take()
            try:
                inner = iter(self._dataset) if inner is None else inner
                sample = next(inner)
            except StopIteration:
                numbers.give_back()
                return
            except BaseException:
                numbers.give_back()
                raise
            yield sample

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


class _PlacedCollate:
    def __init__(self, collate: Callable[[Any], Any], stream: _PlacedStream) -> None:
        self._collate, self._stream = collate, stream

    def __call__(self, samples: Any) -> Any:
        if get_worker_info() is not None:
            return self._collate(samples)
        with self._stream.numbers.taken():
            return self._collate(samples)


def _as_it_is(batch: Any) -> Any:
    return batch


def _replace(loader: DataLoader[Any], **attributes: Any) -> None:
    """DataLoader refuses some of these once it is made; they count from its next iteration on."""
    for name, value in attributes.items():
        object.__setattr__(loader, name, value)


def _parts_of(loader: Any) -> list[Any]:
    """List the loader's sampler, batch sampler and data, and the samplers inside them, each once."""
    parts: list[Any] = []
    waiting = [loader.sampler, loader.batch_sampler, loader.dataset]
    while waiting:
        part = waiting.pop(0)
        if part is not None and not any(part is known for known in parts):
            parts.append(part)
            inside = getattr(part, "__dict__", {})
            waiting += [inside.get("batch_sampler"), inside.get("sampler")]
    return parts


def _generators_in(parts: list[Any]) -> list[torch.Generator]:
    generators: list[torch.Generator] = []
    for part in parts:
        generator = getattr(part, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is known for known in generators):
            generators.append(generator)
    return generators
