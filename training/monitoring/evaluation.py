"""The loss on data that is not trained on, between two steps and without a trace in them.

Nothing of the training changes: no random number is drawn, the data is read by a reader of its own, and the
meter's clock stands still.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from training.data.batches import Batch, prefetched
from training.data.validation import ValidationSource
from training.metrics import Validation
from training.models.loss import Objective
from training.models.transformer import Backbone
from training.ranks.world import World


class Evaluation:
    """Evaluates a model. Every rank makes one and calls the same methods in the same order."""

    def __init__(
        self, model: Backbone, *, world: World, batches: ValidationSource, objective: Objective, depth: int
    ) -> None:
        """Prepare evaluations that read ``depth`` batches ahead."""
        self._world, self._model, self._batches = world, model, batches
        self._objective, self._depth = objective, depth
        self._judges_hits = False
        self._sums = self._zero()

    def batches(self) -> Iterator[None]:
        """Evaluate once, and yield after each batch, where the caller may give up."""
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
        """Return the result of the batches so far, over all ranks; waits for the device."""
        loss, counted, hits = self._world.summed(self._sums).tolist()
        targets = max(1.0, counted)
        accuracy = hits / targets if self._judges_hits else None
        return Validation(step=step, loss=loss / targets, tokens=int(counted), accuracy=accuracy)

    @torch.no_grad()
    def _add(self, batch: Batch) -> None:
        batch = tuple(tensor.to(self._world.device, non_blocking=True) for tensor in batch)
        outputs = self._objective.outputs(self._model, batch)
        losses = self._objective.terms(outputs, batch)
        hits = self._objective.hits(outputs, batch)
        self._judges_hits = hits is not None
        counted = self._objective.counted(batch)
        hit_sum = torch.zeros_like(counted) if hits is None else hits
        self._sums += torch.stack([losses.sum(dtype=torch.float64), counted, hit_sum])

    def _zero(self) -> Tensor:
        return torch.zeros(3, dtype=torch.float64, device=self._world.device)
