"""A vision transformer: patches of an image as tokens, learned positions, the blocks of the decoders.

Its blocks see every token of the image and have LayerNorm and GELU instead of RMSNorm and SwiGLU. Positions
are added once instead of rotating queries and keys. All of that is in the shape (`models/transformer.py`).
It learns the classes of images, or the pixels of hidden patches.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.config.vision_shape import CHANNELS, Pooling, VisionShape
from training.data.batches import IGNORED, Batch
from training.models.transformer import Backbone, Block, norm_of

_BRIGHTEST = 255


class PatchEmbedding(nn.Module):
    """Tokens of images: the class token where there is one, and each patch, with their positions."""

    def __init__(self, shape: VisionShape) -> None:
        super().__init__()
        self.shape = shape
        self.patches = nn.Conv2d(CHANNELS, shape.width, kernel_size=shape.patch, stride=shape.patch)
        self.positions = nn.Parameter(torch.empty(1, shape.sequence_length, shape.width))
        has_class_token = shape.pooling is Pooling.CLASS
        self.class_token = nn.Parameter(torch.empty(1, 1, shape.width)) if has_class_token else None
        self.mask_token = nn.Parameter(torch.empty(1, 1, shape.width)) if shape.masked else None

    def forward(self, images: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return the tokens of images.

        Args:
            images: Pixels as ``scaled`` takes them.
            hidden: Patches that are not seen, of shape (images, patches); None: all are.
        """
        tokens = self.patches(scaled(images, self.shape).to(self.patches.weight.dtype))
        tokens = tokens.flatten(2).transpose(1, 2)
        if hidden is not None:
            assert self.mask_token is not None
            tokens = torch.where(hidden.unsqueeze(2), self.mask_token.to(tokens), tokens)
        if self.class_token is not None:
            tokens = torch.cat((self.class_token.expand(len(tokens), -1, -1), tokens), dim=1)
        return tokens + self.positions  # type: ignore[no-any-return]  # a module's call has no type


class VisionTransformer(Backbone):
    shape: VisionShape

    def __init__(self, shape: VisionShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = PatchEmbedding(shape)
        self.blocks = nn.ModuleDict({str(layer): Block(shape) for layer in range(shape.layers)})
        self.norm = norm_of(shape, shape.width)
        self.head = nn.Linear(shape.width, shape.outputs)

    def forward(self, images: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return logits (images, classes), or for a masked shape pixels (images * patches, patch_values)."""
        x = self.embedding(images, hidden)
        for block in self.blocks.values():
            x = block(x)
        if self.shape.masked:
            x = self.norm(x[:, -self.shape.patches :]).flatten(0, 1)
        elif self.shape.pooling is Pooling.CLASS:
            x = self.norm(x[:, 0])
        else:
            x = self.norm(x).mean(dim=1)
        return self.head(x)  # type: ignore[no-any-return]  # a module's call has no type


def scaled(images: Tensor, shape: VisionShape) -> Tensor:
    """Scale bytes (images, colours, height, width) to what the model sees; other types are scaled already."""
    if images.dtype is not torch.uint8:
        return images
    mean, deviation = (
        _BRIGHTEST * torch.tensor(colours, device=images.device).view(-1, 1, 1)
        for colours in (shape.pixel_mean, shape.pixel_deviation)
    )
    return images.float().sub_(mean).div_(deviation)


def patches_of(images: Tensor, patch: int) -> Tensor:
    """Cut (images, colours, height, width) into (images, patches, values), in the order of the tokens."""
    count, colours, height, width = images.shape
    cut = images.reshape(count, colours, height // patch, patch, width // patch, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifying:
    """Objective of classes; a batch is images, and the number of each one's class, of shape (images, 1)."""

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
    """Objective of hidden pixels; a batch is images, and their hidden patches, of shape (images, patches).

    The model predicts the pixels of hidden patches, scaled as it sees them; the loss of a patch is the mean
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
        """Return None: a pixel is never simply right or wrong."""
        return
