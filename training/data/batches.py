"""Sequences that a step and a rank see: a function of the step, so that a checkpoint holds nothing of it.

Every epoch has an order of its own, computed and never stored. A place in the order is a function of (seed,
epoch, place), so the state of the data is the step alone, and any number of ranks sees the same global
batches.

The order is mixed in two levels, because a sequence is a few kilobytes and storage is fast only for whole
blocks. Neighbouring sequences form chunks; the chunks are permuted, and then the sequences of each window of
64 chunks among themselves. So a reader needs the blocks of one window at a time, and a batch still comes from
all over the corpus. A corpus of fewer chunks than a window is simply permuted. Batches are read ahead of use
in one thread, so that a step does not wait for storage.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from queue import SimpleQueue
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from training.data import STEP, Number, seed_of, signed_word, splitmix
from training.data.corpus import Corpus

Batch: TypeAlias = tuple[Tensor, ...]
"""Inputs and targets (sequences, sequence_length); with document masks also each input's document."""
IGNORED = -100
"""Target whose prediction is not trained; torch's cross_entropy leaves it out."""
CHUNK_TOKENS = 2**19
"""Tokens of a chunk: 1 MiB of uint16, about one block of a shard."""
WINDOW_CHUNKS = 64
_TABLED = range(2**8, 2**17 + 1)
"""Numbers of sequences of a window whose permutation is computed at once: those of 256 tokens and longer.
One place at a time would take ten times as long, and a rank needs a good part of the window."""
_AT_ONCE = 2**14
"""Places that are permuted at once: few enough for torch to stay in this thread."""
_ROUNDS = 6
_JOIN_SECONDS = 2.0
"""Seconds to wait for the thread at the end; it is a daemon, and is left behind in a read that hangs."""


class BatchSource(Protocol):
    def at(self, step: int) -> Batch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Batches of tokens: each step takes the next ``size`` sequences of the order, each rank a slice of them.

    The batch of a step is the same whatever the number of ranks.
    """

    corpus: Corpus
    sequence_length: int
    size: int
    """Sequences per step, over all ranks."""
    rank: int
    ranks: int
    seed: int
    by_document: bool = False
    """Whether attention stays inside documents: then their numbers are part of a batch."""

    @property
    def is_masked(self) -> bool:
        """Tell whether some targets are not trained."""
        return self.by_document or self.corpus.is_masked

    def at(self, step: int) -> Batch:
        """Return this rank's part of a step's batch.

        Steps count from 1, so that n steps of an n-th of the corpus are one epoch.
        """
        return batch_of(self.corpus, self.numbers(step), self.sequence_length, by_document=self.by_document)

    def numbers(self, step: int) -> list[int]:
        """Return the numbers of the sequences that a step has on this rank."""
        share = self.size // self.ranks
        rows = range(self.rank * share, (self.rank + 1) * share)
        if self.corpus.sequences is None:
            return [step * self.size + row for row in rows]
        order = Order(
            sequences=self.corpus.sequences,
            chunk=max(1, CHUNK_TOKENS // self.sequence_length),
            seed=self.seed,
        )
        return [order.number((step - 1) * self.size + row) for row in rows]


def batch_of(corpus: Corpus, numbers: Sequence[int], length: int, *, by_document: bool) -> Batch:
    """Return the inputs and the tokens that follow them.

    Where attention cannot see across documents, no token is trained to follow the document before it.
    """
    tokens = corpus.rows(numbers, length + 1)
    # A view of other strides could not be pinned as it is.
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    if (trained := corpus.trained(numbers, length + 1)) is not None:
        targets = targets.masked_fill(~trained[:, 1:], IGNORED)
    if not by_document:
        return inputs, targets
    begins = corpus.begins(numbers, length + 1)
    assert begins is not None, "a corpus without documents is refused when it is opened"
    targets = targets.masked_fill(begins[:, 1:], IGNORED)
    return inputs, targets, begins[:, :-1].cumsum(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    sequences: int
    chunk: int
    """Number of neighbouring sequences that stay in one window."""
    seed: int

    def number(self, place: int) -> int:
        """Return the sequence at a place of the row of all epochs; each epoch has every sequence once."""
        epoch, index = divmod(place, self.sequences)
        # The last chunk may be short: what falls beyond it walks on until it is inside, which keeps
        # the order a permutation.
        index = self._permuted(epoch, index)
        while index >= self.sequences:
            index = self._permuted(epoch, index)
        return index

    def _permuted(self, epoch: int, index: int) -> int:
        """Permute the sequences of whole chunks; these are at most twice as many as there are sequences."""
        size = min(self.chunk, self.sequences)
        chunks = -(-self.sequences // size)
        window, within = divmod(index, WINDOW_CHUNKS * size)
        first = window * WINDOW_CHUNKS
        width = min(WINDOW_CHUNKS, chunks - first) * size
        slot, offset = divmod(_mixed(within, width, key=_key(self.seed, "window", epoch, window)), size)
        return _chunk(first + slot, chunks, _key(self.seed, "chunks", epoch)) * size + offset


_key = lru_cache(maxsize=64)(seed_of)


@lru_cache(maxsize=4 * WINDOW_CHUNKS)
def _chunk(index: int, chunks: int, key: int) -> int:
    """Permute the chunks; all sequences of a chunk ask for the same."""
    return permuted(index, chunks, key=key)


def _mixed(index: int, size: int, *, key: int) -> int:
    """Permute like ``permuted``, quickly if many places of one permutation are needed."""
    if size not in _TABLED:
        return permuted(index, size, key=key)
    table = _table(_half(size), key)
    index = table[index]
    while index >= size:
        index = table[index]
    return index


@lru_cache(maxsize=4)
def _table(half: int, key: int) -> list[int]:
    domain = 1 << 2 * half
    pieces = (torch.arange(at, min(at + _AT_ONCE, domain)) for at in range(0, domain, _AT_ONCE))
    return [image for piece in pieces for image in _network(piece, half, key).tolist()]


def permuted(index: int, size: int, *, key: int) -> int:
    """Return where the permutation of ``range(size)`` that the key names takes ``index``.

    A Feistel network permutes the next power of four; walking its cycle until the value is inside gives
    a permutation of the range (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
    """
    half = _half(size)
    index = _network(index, half, key)
    while index >= size:
        index = _network(index, half, key)
    return index


def _half(size: int) -> int:
    """Return the number of bits of each half of the network."""
    return ((size - 1).bit_length() + 1) // 2


def _network(value: Number, half: int, key: int) -> Number:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for turn in _turns(key):
        left, right = right, left ^ (splitmix((right + turn) * STEP) & mask)
    return left << half | right


@lru_cache(maxsize=64)
def _turns(key: int) -> tuple[int, ...]:
    return tuple(signed_word(key + (turn << 48)) for turn in range(_ROUNDS))


@contextmanager
def prefetched(
    batches: BatchSource, *, depth: int, steps: range, pin: torch.device | None
) -> Iterator[BatchSource]:
    """Give the same batches, the next ``depth`` of ``steps`` read ahead in a thread; they are taken in order.

    The step that needs a batch raises what went wrong in the thread. With depth 0 there is no thread.

    Args:
        batches: Source of the batches.
        depth: Batches that are read ahead.
        steps: Steps whose batches will be taken.
        pin: Device that they go to; for a GPU they are kept where it can fetch them by itself.
    """
    if depth == 0:
        yield batches
        return
    ahead = _Ahead(batches, depth=depth, steps=steps, pin=pin)
    try:
        yield ahead
    finally:
        ahead.close()


class _Ahead:
    def __init__(self, batches: BatchSource, *, depth: int, steps: range, pin: torch.device | None) -> None:
        self._batches, self._steps = batches, steps
        self._pin = pin if pin is not None and pin.type == "cuda" else None
        self._room = threading.Semaphore(depth)
        self._ready: SimpleQueue[tuple[int, Batch | BaseException]] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._read, name="prefetch", daemon=True)
        self._thread.start()

    def at(self, step: int) -> Batch:
        number, batch = self._ready.get()
        if isinstance(batch, BaseException):
            self._ready.put((number, batch))  # whoever asks again gets the same answer
            raise batch
        assert number == step, f"step {step} was asked for, step {number} comes next"
        self._room.release()
        return batch

    def close(self) -> None:
        self._closed = True
        self._room.release()
        self._thread.join(_JOIN_SECONDS)

    def _read(self) -> None:
        step = self._steps.start
        try:
            if self._pin is not None:
                torch.cuda.set_device(self._pin)  # per thread; else each rank opens a context on GPU 0
            for step in self._steps:
                self._room.acquire()
                if self._closed:
                    return
                self._ready.put((step, self._batch(step)))
        except BaseException as error:  # noqa: BLE001  raised where the batch is asked for
            self._ready.put((step, error))

    def _batch(self, step: int) -> Batch:
        batch = self._batches.at(step)
        return batch if self._pin is None else tuple(tensor.pin_memory() for tensor in batch)
