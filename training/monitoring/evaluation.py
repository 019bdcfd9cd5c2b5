"""The loss on data that is not trained on, between two steps and without a trace in them.

Nothing of the training changes: no random number is drawn, the data is read by a reader of its own, and the
meter's clock stands still.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from training.config import TrainConfig
from training.data.batches import IGNORED, Batch, BatchSource, batch_of, prefetched
from training.data.corpus import Corpus
from training.metrics import Validation
from training.model import Backbone
from training.models.loss import Objective
from training.ranks.world import World


class ValidationSource(BatchSource, Protocol):
    @property
    def count(self) -> int:
        """Batches, the same on every rank; they are numbered from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationBatches:
    """The first sequences of a corpus, each once, in their order; every rank has equally many batches."""

    corpus: Corpus
    sequences: int
    sequence_length: int
    share: int
    """Sequences of a batch on this rank."""
    rank: int
    ranks: int
    by_document: bool

    @classmethod
    def of(cls, config: TrainConfig, world: World, corpus: Corpus) -> Self:
        wanted = config.eval_batches * config.batch_size
        there = wanted if corpus.sequences is None else corpus.sequences
        return cls(
            corpus=corpus,
            sequences=min(wanted, there) if wanted else there,
            sequence_length=config.shape.sequence_length,
            share=config.batch_size // (world.data_ranks * config.gradient_accumulation_steps),
            rank=world.data_rank,
            ranks=world.data_ranks,
            by_document=config.document_mask,
        )

    @property
    def count(self) -> int:
        return -(-self.sequences // (self.share * self.ranks))

    def at(self, number: int) -> Batch:
        first = (number * self.ranks + self.rank) * self.share
        numbers = [self._number(min(one, self.sequences - 1)) for one in range(first, first + self.share)]
        inputs, targets, *documents = batch_of(
            self.corpus, numbers, self.sequence_length, by_document=self.by_document
        )
        # Behind the last sequence it comes again, uncounted.
        again = torch.arange(first, first + self.share).unsqueeze(1) >= self.sequences
        return inputs, targets.masked_fill(again, IGNORED), *documents

    def _number(self, place: int) -> int:
        """Of a corpus without end the training has the sequences from 0 on."""
        return -1 - place if self.corpus.sequences is None else place


class Evaluation:
    """Every rank makes one and calls alike."""

    def __init__(
        self, model: Backbone, *, world: World, batches: ValidationSource, objective: Objective, depth: int
    ) -> None:
        """``depth``: batches read ahead."""
        self._world, self._model, self._batches = world, model, batches
        self._objective, self._depth = objective, depth
        self._judges_hits = False
        self._sums = self._zero()

    def batches(self) -> Iterator[None]:
        """Evaluate again; between two batches the caller may give up."""
        self._sums = self._zero()
        pin = self._world.device if self._world.device.type == "cuda" else None
        numbers = range(self._batches.count)
        with prefetched(self._batches, depth=self._depth, steps=numbers, pin=pin) as source:
            for number in numbers:
                self._add(source.at(number))
                yield
        for module in self._model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()  # a forward pass leaves the last weights gathered for a backward pass

    def result(self, step: int) -> Validation:
        """Of the batches so far, over all ranks; waits for the device."""
        loss, counted, hits = self._world.summed(self._sums).tolist()
        targets = max(1.0, counted)
        accuracy = hits / targets if self._judges_hits else None
        return Validation(step=step, loss=loss / targets, tokens=int(counted), accuracy=accuracy)

    @torch.no_grad()
    def _add(self, batch: Batch) -> None:
        batch = tuple(one.to(self._world.device, non_blocking=True) for one in batch)
        outputs = self._objective.outputs(self._model, batch)
        losses = self._objective.terms(outputs, batch)
        hits = self._objective.hits(outputs, batch)
        self._judges_hits = hits is not None
        counted = self._objective.counted(batch)
        found = torch.zeros_like(counted) if hits is None else hits
        self._sums += torch.stack([losses.sum(dtype=torch.float64), counted, found])

    def _zero(self) -> Tensor:
        return torch.zeros(3, dtype=torch.float64, device=self._world.device)
