"""The parts of a DataLoader, each around the one that was there: samplers, data and collators.

Each answers for all else as the one inside, and can be sent to a worker.
"""

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import Dataset, IterableDataset, get_worker_info

from training.preemptible.adapters.random_numbers import Aside, mixed

_END = object()
_REMEMBERED = 4096
"""Digests of the newest batches: workers take batches from a sampler ahead of the training."""


class _Placed(list[Any]):
    """Indices of one batch, and its place: the epoch, and its number in the epoch; workers get both."""

    place: tuple[int, int] = (0, 0)


class PlacedBatches:
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


class PlacedOrder:
    """A sampler of a loader without batches (``batch_size=None``), which draws from numbers of its own."""

    def __init__(self, sampler: Any) -> None:
        self._sampler, self.numbers = sampler, Aside(0)

    def __iter__(self) -> Iterator[Any]:
        numbers = self.numbers
        with numbers.taken():
            inner = iter(self._sampler)
        while True:
            with numbers.taken():
                index = next(inner, _END)
            if index is _END:
                return
            yield index

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._sampler, name)


class PlacedItems(Dataset[Any]):
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


class PlacedStream(IterableDataset[Any]):
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


class PlacedCollate:
    """Collates samples of a stream, with the numbers that they were read with."""

    def __init__(self, collate: Callable[[Any], Any], stream: PlacedStream) -> None:
        self._collate, self._stream = collate, stream

    def __call__(self, samples: Any) -> Any:
        if get_worker_info() is not None:
            return self._collate(samples)
        with self._stream.numbers.taken():
            return self._collate(samples)
