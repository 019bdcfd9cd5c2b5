"""Which sequences a step and a rank see: a function of the step, so a checkpoint holds nothing of it.

Every epoch has an order of its own, computed and never stored.

A place in the order is a function of (seed, epoch, place), so the state of the data is the step alone, and
any number of ranks sees the same global batches.

The order is mixed in two levels, because a sequence is a few kilobytes and storage is fast only for whole
blocks. Neighbouring sequences form chunks; the chunks are permuted, and then the sequences of each window of
64 chunks among themselves. So a reader needs the blocks of one window at a time, and a batch still comes from
all over the corpus. A corpus of fewer chunks than a window is simply permuted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from training.data.corpus import Corpus
from training.seeds import seed_of

Batch: TypeAlias = tuple[Tensor, ...]
"""Inputs and targets, of shape (sequences, sequence_length), and with document masks the number of the
document in which each input is."""
IGNORED = -100
"""The target whose prediction is not trained; torch's cross_entropy leaves it out."""
CHUNK_TOKENS = 2**19
"""1 MiB of uint16: about one block of a shard."""
WINDOW_CHUNKS = 64
_ROUNDS = 6
_WORD = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Each step takes the next ``size`` sequences of the order and each rank its slice of them.

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
    """Attention is to stay inside documents: their numbers are part of a batch."""

    @property
    def is_masked(self) -> bool:
        """Not every target is trained."""
        return self.by_document or self.corpus.is_masked

    def at(self, step: int) -> Batch:
        """Of this rank.

        Steps count from 1, so that n steps of an n-th of the corpus are one epoch.
        """
        return batch_of(self.corpus, self.numbers(step), self.sequence_length, by_document=self.by_document)

    def numbers(self, step: int) -> list[int]:
        """Of the sequences that a step has on this rank."""
        share = self.size // self.ranks
        return [self._number(step, self.rank * share + row) for row in range(share)]

    def _number(self, step: int, row: int) -> int:
        if self.corpus.sequences is None:
            return step * self.size + row
        order = Order(
            sequences=self.corpus.sequences,
            chunk=max(1, CHUNK_TOKENS // self.sequence_length),
            seed=self.seed,
        )
        return order.number((step - 1) * self.size + row)


def batch_of(corpus: Corpus, numbers: Sequence[int], length: int, *, by_document: bool) -> Batch:
    """The inputs and the tokens that follow them.

    No token is trained to follow the document before it, where attention cannot see that.
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
    """Neighbouring sequences that stay in one window."""
    seed: int

    def number(self, place: int) -> int:
        """The sequence at a place of the row of all epochs; each epoch has every sequence once."""
        epoch, index = divmod(place, self.sequences)
        # The last chunk may be short: what falls beyond it walks on until it is inside, which keeps
        # the order a permutation.
        index = self._permuted(epoch, index)
        while index >= self.sequences:
            index = self._permuted(epoch, index)
        return index

    def _permuted(self, epoch: int, index: int) -> int:
        """A permutation of the sequences of whole chunks: at most twice as many as there are."""
        size = min(self.chunk, self.sequences)
        chunks = -(-self.sequences // size)
        window, within = divmod(index, WINDOW_CHUNKS * size)
        first = window * WINDOW_CHUNKS
        width = min(WINDOW_CHUNKS, chunks - first)
        mixed = permuted(within, width * size, key=seed_of(self.seed, "window", epoch, window))
        slot, offset = divmod(mixed, size)
        chunk = permuted(first + slot, chunks, key=seed_of(self.seed, "chunks", epoch))
        return chunk * size + offset


def permuted(index: int, size: int, *, key: int) -> int:
    """Where the permutation of ``range(size)`` named by the key takes ``index``.

    A Feistel network permutes the next power of four; walking its cycle until the value is inside gives
    a permutation of the range (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
    """
    half = ((size - 1).bit_length() + 1) // 2
    index = _network(index, half, key)
    while index >= size:
        index = _network(index, half, key)
    return index


def _network(value: int, half: int, key: int) -> int:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for turn in range(_ROUNDS):
        left, right = right, left ^ (_hashed(right + key + (turn << 48)) & mask)
    return left << half | right


def _hashed(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value = value * 0x9E3779B97F4A7C15 & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
