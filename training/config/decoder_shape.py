"""The shape of a decoder of the Llama family, and those that `--preset` names. No torch: it is read first."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar


class Family(StrEnum):
    """As ``model_type`` of Hugging Face: they differ in where biases are, in norms and in windows."""

    LLAMA = "llama"
    MISTRAL = "mistral"
    QWEN2 = "qwen2"
    QWEN3 = "qwen3"


class Norm(StrEnum):
    RMS = "rms"
    LAYER = "layer"


class RopeKind(StrEnum):
    """How rotary positions were stretched beyond the length that a model was first trained with."""

    DEFAULT = "default"
    LINEAR = "linear"
    DYNAMIC = "dynamic"
    """The base grows with the length of the sequence (NTK)."""
    YARN = "yarn"
    LLAMA3 = "llama3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary positions; what a kind does not use keeps its default."""

    theta: float = 10_000.0
    kind: RopeKind = RopeKind.DEFAULT
    factor: float = 1.0
    original_positions: int = 0
    """The longest sequence before the stretching; of dynamic: beyond which it begins."""
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    """Llama 3: wavelengths that fit less often than ``low_frequency`` into the original length are stretched,
    those that fit more often than ``high_frequency`` are not."""
    beta_slow: float = 1.0
    beta_fast: float = 32.0
    """YaRN: likewise, in turns over the original length."""
    truncate: bool = True
    """YaRN: these bounds are rounded to whole dimensions."""
    attention_factor: float = 1.0
    """YaRN: queries and keys are longer by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Which matrices get an adapter, and of what size."""

    rank: int
    alpha: float
    """The adapters' part is multiplied by alpha / rank."""
    targets: tuple[str, ...]
    """In the words of Hugging Face, e.g. q_proj."""

    def __str__(self) -> str:
        return f"rank {self.rank}, alpha {self.alpha:g}, on {', '.join(self.targets)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """All that decides what the model computes, but its weights."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    """Fewer than ``heads``: grouped-query attention."""
    hidden: int
    """Width inside the feed-forward layer."""
    vocabulary: int
    sequence_length: int
    """Of the training."""
    head_width: int = 0
    """0: width / heads."""
    family: Family = Family.LLAMA
    positions: int = 0
    """The longest sequence that the model is for; 0: as long as those of the training."""
    norm_epsilon: float = 1e-5
    rope: Rope = field(default_factory=Rope)
    qkv_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    head_norms: bool = False
    """Queries and keys are normed, head by head."""
    tied_head: bool = False
    """The head is the embedding."""
    window: int = 0
    """Tokens that a token of a windowed layer sees, itself included."""
    windowed_layers: tuple[int, ...] = ()

    norm: ClassVar = Norm.RMS
    norm_bias: ClassVar = False
    is_gated: ClassVar = True
    """SwiGLU, of three matrices; else GELU, of two."""
    is_causal: ClassVar = True
    """A token sees those before it alone."""
    is_parallel: ClassVar = False
    """Attention and feed-forward layer have the same input, and one norm before both."""

    def __post_init__(self) -> None:
        if not self.head_width:
            object.__setattr__(self, "head_width", self.width // self.heads)

    @property
    def targets(self) -> int:
        """Predictions of a sequence that the loss is the mean over."""
        return self.sequence_length

    @property
    def matrices(self) -> Mapping[str, tuple[int, int]]:
        """Of one block: outputs and inputs, by their names at Hugging Face."""
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        return {
            "q_proj": (queries, self.width),
            "k_proj": (keys, self.width),
            "v_proj": (keys, self.width),
            "o_proj": (self.width, queries),
            "gate_proj": (self.hidden, self.width),
            "up_proj": (self.hidden, self.width),
            "down_proj": (self.width, self.hidden),
        }

    def window_of(self, layer: int) -> int:
        """0: the layer sees all that came before."""
        return self.window if layer in self.windowed_layers else 0

    @property
    def fingerprint(self) -> str:
        """The same for the same model, whatever length it is trained with.

        What is as usual does not count: a field that comes later must not make checkpoints another model's.
        """
        told = _unusual(self)
        told.pop("sequence_length")
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def _unusual(value: Any) -> dict[str, object]:  # noqa: ANN401  a dataclass
    """The fields that are not as they are unless somebody says otherwise."""
    found: dict[str, object] = {}
    for one in fields(value):
        content = getattr(value, one.name)
        if one.name == "rope":
            content = _unusual(content)
        if content not in (one.default, {}):
            found[one.name] = content
    return found


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
