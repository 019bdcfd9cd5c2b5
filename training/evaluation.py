"""The loss on data that is not trained on, between two steps and without a trace in them.

Nothing of the training changes: no random number is drawn, the data is read by a reader of its own, and the
meter's clock stands still.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from training.config import TrainConfig
from training.data.batches import IGNORED, Batch, batch_of
from training.data.corpus import Corpus
from training.data.prefetch import prefetched
from training.loss import Chunks, cross_entropy
from training.metrics import Validation
from training.model import Backbone
from training.world import World


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

    def __init__(self, config: TrainConfig, *, world: World, model: Backbone, corpus: Corpus) -> None:
        self._world, self._model = world, model
        self._depth, self._chunk = config.prefetch_batches, config.loss_chunk
        wanted = config.eval_batches * config.batch_size
        there = wanted if corpus.sequences is None else corpus.sequences
        self._batches = ValidationBatches(
            corpus=corpus,
            sequences=min(wanted, there) if wanted else there,
            sequence_length=config.shape.sequence_length,
            share=config.batch_size // (world.data_ranks * config.gradient_accumulation_steps),
            rank=world.data_rank,
            ranks=world.data_ranks,
            by_document=config.document_mask,
        )
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
        loss, tokens = self._world.summed(self._sums).tolist()
        return Validation(step=step, loss=loss / max(1.0, tokens), tokens=int(tokens))

    @torch.no_grad()
    def _add(self, batch: Batch) -> None:
        inputs, targets, *documents = (one.to(self._world.device, non_blocking=True) for one in batch)
        chunks = Chunks(tokens=self._chunk, targets=targets, terms=cross_entropy) if self._chunk else None
        outputs = self._model(inputs, documents[0] if documents else None, chunks)
        losses = outputs if chunks else cross_entropy(outputs.flatten(0, 1), targets.flatten())
        counted = (targets != IGNORED).sum(dtype=torch.float64)
        self._sums += torch.stack([losses.sum(dtype=torch.float64), counted])

    def _zero(self) -> Tensor:
        return torch.zeros(2, dtype=torch.float64, device=self._world.device)
