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
class FirstSamples:
    """Sequences or images, each once, in their order; every rank has equally many batches of them."""

    samples: int
    is_endless: bool
    """Of data without end the training has the samples from 0 on, so these are -1, -2 and so on."""
    share: int
    """Of a batch, on this rank."""
    rank: int
    ranks: int

    @classmethod
    def of(cls, config: TrainConfig, world: World, there: int | None) -> Self:
        """``there``: in the data; None: without end."""
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
        """Batches, the same on every rank."""
        return -(-self.samples // (self.share * self.ranks))

    def numbers(self, batch: int) -> list[int]:
        """Behind the last sample it comes again."""
        places = [min(one, self.samples - 1) for one in self._places(batch)]
        return [-1 - one for one in places] if self.is_endless else places

    def come_again(self, batch: int) -> Tensor:
        """Of shape (samples, 1): which of them do, and must not be counted."""
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
        numbers = range(self._batches.count)
        pin = self._world.device
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
