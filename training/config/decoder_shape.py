"""Shapes of decoders of the Llama family, and those that `--preset` names. Nothing here imports torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar


class Family(StrEnum):
    """``model_type`` of Hugging Face; families differ in where biases are, in norms and in windows."""

    LLAMA = "llama"
    MISTRAL = "mistral"
    QWEN2 = "qwen2"
    QWEN3 = "qwen3"


class Norm(StrEnum):
    RMS = "rms"
    LAYER = "layer"


class RopeKind(StrEnum):
    """Methods of stretching rotary positions beyond the length that a model was first trained with."""

    DEFAULT = "default"
    LINEAR = "linear"
    DYNAMIC = "dynamic"
    """The base grows with the length of the sequence (NTK)."""
    YARN = "yarn"
    LLAMA3 = "llama3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary positions; a field that the kind does not use keeps its default."""

    theta: float = 10_000.0
    kind: RopeKind = RopeKind.DEFAULT
    factor: float = 1.0
    original_positions: int = 0
    """Tokens of the longest sequence before the stretching; dynamic begins beyond it."""
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    """Bounds of Llama 3: wavelengths that fit less often than ``low_frequency`` into the original length are
    stretched, those that fit more often than ``high_frequency`` are not."""
    beta_slow: float = 1.0
    beta_fast: float = 32.0
    """Bounds of YaRN, in turns over the original length."""
    truncate: bool = True
    """Whether YaRN's bounds are rounded to whole dimensions."""
    attention_factor: float = 1.0
    """Factor by which YaRN lengthens queries and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Adapters to train: their size, and the matrices that get one."""

    rank: int
    alpha: float
    """Scale: the output of an adapter is multiplied by alpha / rank."""
    targets: tuple[str, ...]
    """Names of the matrices at Hugging Face, e.g. q_proj."""

    def __str__(self) -> str:
        return f"rank {self.rank}, alpha {self.alpha:g}, on {', '.join(self.targets)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Everything but the weights that decides what the model computes."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    """Heads of keys and values; fewer than ``heads`` mean grouped-query attention."""
    hidden: int
    """Width inside the feed-forward layer."""
    vocabulary: int
    sequence_length: int
    """Tokens of a sequence in the training."""
    head_width: int = 0
    """Width of one head; 0: width / heads."""
    family: Family = Family.LLAMA
    positions: int = 0
    """Tokens of the longest sequence that the model is meant for; 0: ``sequence_length``."""
    norm_epsilon: float = 1e-5
    rope: Rope = field(default_factory=Rope)
    qkv_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    head_norms: bool = False
    """Whether queries and keys are normed, head by head."""
    tied_head: bool = False
    """Whether the head shares the embedding's weights."""
    window: int = 0
    """Number of tokens that a token of a windowed layer sees, itself included."""
    windowed_layers: tuple[int, ...] = ()

    norm: ClassVar = Norm.RMS
    norm_bias: ClassVar = False
    is_gated: ClassVar = True
    """Whether the feed-forward layer is SwiGLU, of three matrices; else GELU, of two."""
    is_causal: ClassVar = True
    """Whether a token attends only to itself and the tokens before it."""
    is_parallel: ClassVar = False
    """Whether attention and feed-forward layer have the same input, and one norm before both."""

    def __post_init__(self) -> None:
        if not self.head_width:
            object.__setattr__(self, "head_width", self.width // self.heads)

    @property
    def targets(self) -> int:
        """Number of predictions of a sequence that the loss is the mean over."""
        return self.sequence_length

    @property
    def matrices(self) -> Mapping[str, tuple[int, int]]:
        """Outputs and inputs of the matrices of one block, by their names at Hugging Face."""
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
        """Return how many tokens a layer sees; 0: all that came before."""
        return self.window if layer in self.windowed_layers else 0

    @property
    def fingerprint(self) -> str:
        """Digest of the model, the same whatever length it is trained with.

        Fields that have their default do not count: a field that is added later must not make old checkpoints
        those of another model.
        """
        values = _unusual(self)
        values.pop("sequence_length")
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _unusual(value: Any) -> dict[str, object]:  # noqa: ANN401  a dataclass
    """Return the fields whose values are not the defaults."""
    unusual: dict[str, object] = {}
    for attribute in fields(value):
        content = getattr(value, attribute.name)
        if attribute.name == "rope":
            content = _unusual(content)
        if content not in (attribute.default, {}):
            unusual[attribute.name] = content
    return unusual


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
"""Shapes by the name of the preset. Source of Llama 2's: arXiv 2307.09288. llama-1b fills one GPU, to measure
with."""
