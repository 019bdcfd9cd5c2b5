"""Shapes of vision transformers, and those that `--preset` names. Nothing here imports torch."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from training.config.decoder_shape import ModelShape, Norm

CHANNELS = 3
_MASK_UNIT = 32


class Pooling(StrEnum):
    """Summary of the patches that the head of a classification sees."""

    CLASS = "class"
    """A token of its own, which attends to all patches."""
    MEAN = "mean"
    """The mean of the patches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionShape:
    """Everything but the weights that decides what the model computes."""

    layers: int
    width: int
    heads: int
    hidden: int
    """Width inside the feed-forward layer."""
    patch: int
    """Pixels of a patch's side."""
    image_size: int = 224
    """Pixels of an image's side."""
    classes: int = 1000
    pooling: Pooling = Pooling.CLASS
    masked: float = 0.0
    """Share of the patches that are hidden and predicted (SimMIM); 0: images are classified."""
    norm_epsilon: float = 1e-6
    qkv_bias: bool = True
    norm_bias: bool = True
    head_norms: bool = False
    """Whether queries and keys are normed, head by head."""
    is_parallel: bool = False
    pixel_mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    pixel_deviation: tuple[float, float, float] = (0.5, 0.5, 0.5)
    """Scale of each colour: the model sees pixels from 0 to 1 less the mean, over the deviation."""

    family: ClassVar = "vit"
    norm: ClassVar = Norm.LAYER
    output_bias: ClassVar = True
    feed_forward_bias: ClassVar = True
    is_gated: ClassVar = False
    is_causal: ClassVar = False
    tied_head: ClassVar = False

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def kv_heads(self) -> int:
        return self.heads

    @property
    def patches(self) -> int:
        return (self.image_size // self.patch) ** 2

    @property
    def patch_values(self) -> int:
        """Number of values of a patch: its pixels in each colour."""
        return CHANNELS * self.patch**2

    @property
    def sequence_length(self) -> int:
        """Number of tokens of an image."""
        return self.patches + (self.pooling is Pooling.CLASS)

    @property
    def mask_unit(self) -> int:
        """Pixels of the side of a square that is hidden as a whole: 32, SimMIM's best, where that divides."""
        is_fit = self.image_size % _MASK_UNIT == 0 and _MASK_UNIT % self.patch == 0
        return _MASK_UNIT if is_fit and self.image_size > 2 * _MASK_UNIT else self.patch

    @property
    def masked_patches(self) -> int:
        units = (self.image_size // self.mask_unit) ** 2
        return math.ceil(units * self.masked) * (self.mask_unit // self.patch) ** 2

    @property
    def targets(self) -> int:
        """Number of predictions of an image that the loss is the mean over."""
        return self.masked_patches or 1

    @property
    def outputs(self) -> int:
        """Number of outputs of the head."""
        return self.patch_values if self.masked else self.classes

    @property
    def matrices(self) -> Mapping[str, tuple[int, int]]:
        """Outputs and inputs of the matrices of one block."""
        square = (self.width, self.width)
        return {
            "query": square,
            "key": square,
            "value": square,
            "output": square,
            "up": (self.hidden, self.width),
            "down": (self.width, self.hidden),
        }

    @property
    def flops_per_token(self) -> int:
        """Operations of a training step for a token: 6 per weight of a matrix, 12 per layer for attention.

        The head of a classification multiplies once for an image, so its share is rounded.
        """
        blocks = self.layers * sum(rows * columns for rows, columns in self.matrices.values())
        each = self.patches if self.masked else 1
        outside = self.width * (self.patch_values * self.patches + self.outputs * each)
        mixing = 12 * self.layers * self.width * self.sequence_length
        return 6 * blocks + mixing + round(6 * outside / self.sequence_length)

    @property
    def fingerprint(self) -> str:
        """Digest of the model. Fields that have their default do not count, as with decoders."""
        values = {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if getattr(self, attribute.name) != attribute.default
        }
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


Shape: TypeAlias = ModelShape | VisionShape


def _vit(layers: int, width: int, heads: int, *, patch: int = 16, hidden: int = 0) -> VisionShape:
    return VisionShape(layers=layers, width=width, heads=heads, hidden=hidden or 4 * width, patch=patch)


VISION_PRESETS: Mapping[str, VisionShape] = MappingProxyType(
    {
        "vit-nano": VisionShape(layers=3, width=64, heads=2, hidden=192, patch=8, image_size=32, classes=10),
        "vit-tiny": _vit(12, 192, 3),
        "vit-small": _vit(12, 384, 6),
        "vit-base": _vit(12, 768, 12),
        "vit-large": _vit(24, 1024, 16),
        "vit-huge": _vit(32, 1280, 16, patch=14),
        "vit-giant": _vit(40, 1408, 16, patch=14, hidden=6144),
        "vit-gigantic": _vit(48, 1664, 16, patch=14, hidden=8192),
        "vit-22b": VisionShape(
            layers=48,
            width=6144,
            heads=48,
            hidden=24_576,
            patch=14,
            pooling=Pooling.MEAN,
            qkv_bias=False,
            norm_bias=False,
            head_norms=True,
            is_parallel=True,
        ),
    }
)
"""Sources. Tiny and small: Touvron et al., DeiT, arXiv 2012.12877, table 1. Base, large and huge: Dosovitskiy
et al., ViT, arXiv 2010.11929, table 1. Giant and gigantic (g and G): Zhai et al., Scaling Vision
Transformers, arXiv 2106.04560, table 2. 22B: Dehghani et al., Scaling Vision Transformers to 22 Billion
Parameters, arXiv 2302.05442, table 1 and section 2, but for its head, which pools by attention: here it is
the mean. vit-nano is for tests and demonstrations."""
