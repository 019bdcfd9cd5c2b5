"""The model shapes that `--preset` names."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A decoder-only transformer of the Llama family."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    """Fewer than ``heads``: grouped-query attention."""
    hidden: int
    """Width inside the feed-forward layer."""
    vocabulary: int
    sequence_length: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def _llama(layers: int, width: int, heads: int, hidden: int, *, kv_heads: int | None = None) -> ModelShape:
    return ModelShape(
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads or heads,
        hidden=hidden,
        vocabulary=32_000,
        sequence_length=4096,
    )


PRESETS: Mapping[str, ModelShape] = MappingProxyType(
    {
        "tiny": ModelShape(
            layers=4, width=128, heads=4, kv_heads=2, hidden=352, vocabulary=256, sequence_length=128
        ),
        "llama-1b": _llama(22, 2048, 16, 5632),
        "llama2-7b": _llama(32, 4096, 32, 11_008),
        "llama2-13b": _llama(40, 5120, 40, 13_824),
        "llama2-70b": _llama(80, 8192, 64, 28_672, kv_heads=8),
    }
)
"""Source of Llama 2's shapes: arXiv 2307.09288. llama-1b is one GPU's worth, for measuring."""
