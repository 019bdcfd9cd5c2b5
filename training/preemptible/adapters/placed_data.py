"""Data whose order and random numbers follow from a seed, the epoch and the place in it.

A loader as people write it draws its order, its masks and its augmentations from the numbers that dropout
draws from too, so an attempt that skips what was seen would see other data afterwards. ``PlacedData`` changes
a DataLoader in place: what it yields at a place of an epoch is then the same in every attempt, whether the
batches before were made or skipped, and making it draws no number from the training's own.
"""

from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler

from training.preemptible.adapters.placed_parts import (
    PlacedBatches,
    PlacedCollate,
    PlacedItems,
    PlacedOrder,
    PlacedStream,
)
from training.preemptible.adapters.random_numbers import Aside, mixed


class PlacedData:
    """One torch DataLoader, changed so that it can be entered anywhere in an epoch.

    Args:
        loader: With a batch sampler over indices, or over an IterableDataset.
        seed: The same on all ranks and in all attempts.
        rank: Of those that share the data; each draws other masks and augmentations.
        generator_seeds: Those of the attempt before, by ``generator_seeds``; empty: it had no generators;
            None: there was no attempt before, or it did not say.
    """

    def __init__(
        self, loader: Any, *, seed: int, rank: int = 0, generator_seeds: tuple[int, ...] | None = None
    ) -> None:
        self._loader, self._seed = loader, seed
        if (earlier := vars(loader).get("placed_data")) is not None:
            earlier.undo()
        self._before = {
            name: getattr(loader, name)
            for name in ("sampler", "batch_sampler", "dataset", "collate_fn", "generator")
        }
        loader.placed_data = self
        self._parts = _parts_of(loader)
        self._generators = _generators_in([*self._parts, loader])
        if generator_seeds is not None and len(generator_seeds) != len(self._generators):
            _draw_as_before(self._parts, has_more=len(generator_seeds) > len(self._generators))
            self._generators = _generators_in([*self._parts, loader])
        own = tuple(generator.initial_seed() for generator in self._generators)
        self.generator_seeds = tuple(generator_seeds or own)
        self._batches: PlacedBatches | None = None
        self._stream: PlacedStream | None = None
        self._order: PlacedOrder | None = None
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
        else:
            self._order = PlacedOrder(loader.sampler)
            _replace(loader, sampler=self._order)

    def digest_after(self, seen: int) -> int | None:
        """Return a number that tells orders of the epoch's first batches apart; None if it is not known."""
        return None if self._batches is None else self._batches.digest_after(seen)

    def undo(self) -> None:
        """Make the loader what it was."""
        _replace(self._loader, **self._before)
        for generator, seed in zip(self._generators, self.generator_seeds, strict=False):
            generator.manual_seed(seed)

    @property
    def can_skip_unread(self) -> bool:
        """Tell whether ``begin`` with ``seen`` skips batches unread; a stream must be read to skip."""
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
        if self._order is not None:
            self._order.numbers = Aside(mixed("order", self._seed, epoch))
        if self._stream is not None:
            self._stream.numbers = Aside(mixed("stream", self._seed, epoch))

    def _place_items(self, rank: int) -> None:
        self._batches = PlacedBatches(self._loader.batch_sampler)
        items = PlacedItems(
            self._loader.dataset, self._loader.collate_fn, seed=mixed("items", self._seed, rank)
        )
        _replace(self._loader, batch_sampler=self._batches, dataset=items, collate_fn=_as_it_is)

    def _place_stream(self, rank: int) -> None:
        self._stream = PlacedStream(self._loader.dataset, Aside(mixed(self._seed, rank)))
        _replace(
            self._loader,
            dataset=self._stream,
            collate_fn=PlacedCollate(self._loader.collate_fn, self._stream),
        )


def own_seed(loader: Any) -> int:
    """Read the seed that a loader's sampler was given, else the one that torch was given."""
    seeds = (getattr(part, "initial_seed", None) for part in _parts_of(loader))
    return next((seed for seed in seeds if isinstance(seed, int)), torch.initial_seed())


def workers_of(loader: Any) -> int | None:
    """Read how many workers make batches of a stream; None where they cannot change its order."""
    return loader.num_workers if isinstance(getattr(loader, "dataset", None), IterableDataset) else None


def _as_it_is(batch: Any) -> Any:
    return batch


def _replace(loader: DataLoader[Any], **attributes: Any) -> None:
    """Set attributes of a loader that is already made, some of which DataLoader refuses to set.

    They count from its next iteration on.
    """
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


def _draw_as_before(parts: list[Any], *, has_more: bool) -> None:
    """Have samplers draw their order from what it was drawn from in the attempt before.

    Accelerate gives a sampler without a generator one on several ranks and none on one rank, and the two draw
    different orders.

    Args:
        parts: Of the loader.
        has_more: The attempt before had more generators than this one; else fewer.
    """
    for part in parts:
        if isinstance(part, Sampler) and hasattr(part, "generator"):
            if not has_more:
                part.generator = None
            elif part.generator is None:
                part.generator = torch.Generator()


def _generators_in(parts: list[Any]) -> list[torch.Generator]:
    generators: list[torch.Generator] = []
    for part in parts:
        generator = getattr(part, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is known for known in generators):
            generators.append(generator)
    return generators
