"""What a vision transformer learns from images: their classes, or what is behind hidden patches."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.data.batches import IGNORED, Batch
from training.vision.shape import VisionShape
from training.vision.vit import patches_of, scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifying:
    """A batch: images, and the number of the class of each, of shape (images, 1)."""

    smoothing: float = 0.0

    def outputs(self, model: nn.Module, batch: Batch) -> Tensor:
        return model(batch[0])  # type: ignore[no-any-return]  # a module's call has no type

    def terms(self, outputs: Tensor, batch: Batch) -> Tensor:
        losses = F.cross_entropy(
            outputs.float(),
            batch[1].flatten(),
            reduction="none",
            ignore_index=IGNORED,
            label_smoothing=self.smoothing,
        )
        return losses.unsqueeze(1)

    def counted(self, batch: Batch) -> Tensor:
        return (batch[1] != IGNORED).sum(dtype=torch.float64)

    def hits(self, outputs: Tensor, batch: Batch) -> Tensor:
        return (outputs.argmax(-1) == batch[1].flatten()).sum(dtype=torch.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmasking:
    """A batch: images, and which patches of each are hidden, of shape (images, patches).

    Predicted are the pixels of hidden patches, as the model sees pixels; the loss of a patch is the mean
    distance of its numbers. Source: Xie et al., SimMIM, arXiv 2111.09886.
    """

    shape: VisionShape

    def outputs(self, model: nn.Module, batch: Batch) -> Tensor:
        return model(batch[0], batch[1])  # type: ignore[no-any-return]  # a module's call has no type

    def terms(self, outputs: Tensor, batch: Batch) -> Tensor:
        images, hidden = batch
        pixels = patches_of(scaled(images, self.shape), self.shape.patch).flatten(0, 1)
        distances = (outputs.float() - pixels).abs().mean(dim=-1)
        return (distances * hidden.flatten()).unsqueeze(1)

    def counted(self, batch: Batch) -> Tensor:
        return batch[1].sum(dtype=torch.float64)

    def hits(self, _outputs: Tensor, _batch: Batch) -> None:
        """Nothing is right or wrong here."""
        return
