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


PRESETS: Mapping[str, ModelShape] = MappingProxyType(
    {
        "tiny": ModelShape(
            layers=4, width=128, heads=4, kv_heads=2, hidden=352, vocabulary=256, sequence_length=128
        ),
    }
)
