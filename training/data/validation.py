"""Samples that an evaluation takes: each once, in their order, on any number of ranks."""

from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from training.config.sections import DataOptions
from training.data.batches import IGNORED, Batch, BatchSource, batch_of
from training.data.corpus import Corpus
from training.ranks.world import World


class ValidationSource(BatchSource, Protocol):
    @property
    def count(self) -> int:
        """Number of batches, the same on every rank; they are numbered from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSamples:
    """Sequences or images, each once, in their order; every rank has equally many batches of them."""

    samples: int
    is_endless: bool
    """Whether the data have no end: then samples from 0 on are for training, and these are -1, -2 ..."""
    share: int
    """Samples of a batch on this rank."""
    rank: int
    ranks: int

    @classmethod
    def of(cls, config: DataOptions, world: World, there: int | None) -> Self:
        """Choose the samples of an evaluation.

        Args:
            config: Options of the job.
            world: The ranks that divide each batch.
            there: Number of samples of the data; None if they have no end.
        """
        wanted = config.eval_batches * config.batch_size
        return cls(
            samples=wanted if there is None else min(wanted or there, there),
            is_endless=there is None,
            share=config.batch_size // (world.data_ranks * config.gradient_accumulation_steps),
            rank=world.data_rank,
            ranks=world.data_ranks,
        )

    @property
    def count(self) -> int:
        """Number of batches, the same on every rank."""
        return -(-self.samples // (self.share * self.ranks))

    def numbers(self, batch: int) -> list[int]:
        """Return the numbers of a batch's samples; past the end the last sample is repeated."""
        places = [min(place, self.samples - 1) for place in self._places(batch)]
        return [-1 - place for place in places] if self.is_endless else places

    def come_again(self, batch: int) -> Tensor:
        """Tell which samples of a batch are repeated and must not be counted: shape (samples, 1)."""
        return torch.tensor(self._places(batch)).unsqueeze(1) >= self.samples

    def _places(self, batch: int) -> range:
        first = (batch * self.ranks + self.rank) * self.share
        return range(first, first + self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationBatches:
    corpus: Corpus
    samples: FirstSamples
    sequence_length: int
    by_document: bool

    @property
    def count(self) -> int:
        return self.samples.count

    def at(self, number: int) -> Batch:
        numbers = self.samples.numbers(number)
        inputs, targets, *documents = batch_of(
            self.corpus, numbers, self.sequence_length, by_document=self.by_document
        )
        return inputs, targets.masked_fill(self.samples.come_again(number), IGNORED), *documents
