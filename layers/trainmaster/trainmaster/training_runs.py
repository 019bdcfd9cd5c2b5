"""What a job of the training program trains, and how, as its hyperparameters say."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

DEFAULT_BATCH_SIZE = 8
_LONGEST_NUMBER = 9
"""Digits; keeps the sums small."""


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    """Computes in bf16; weights, gradients and optimizer are fp32."""
    BF16_PURE = "bf16_pure"


class Strategy(StrEnum):
    """FSDP's words for what is divided among which ranks."""

    FULL_SHARD = "full_shard"
    SHARD_GRAD_OP = "shard_grad_op"
    """As full_shard, but the weights stay gathered from forward to backward."""
    HYBRID_SHARD = "hybrid_shard"
    """full_shard among the ranks of one host."""
    HYBRID_SHARD_ZERO2 = "hybrid_shard_zero2"
    NO_SHARD = "no_shard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A decoder-only transformer of the Llama family."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    sequence_length: int

    @property
    def kv_width(self) -> int:
        return self.width // self.heads * self.kv_heads

    @property
    def block_params(self) -> int:
        """Four matrices of attention, three of the feed-forward layer, two norms."""
        attention = 2 * self.width * self.width + 2 * self.width * self.kv_width
        return attention + 3 * self.width * self.hidden + 2 * self.width

    @property
    def root_params(self) -> int:
        """Embedding, head and the last norm."""
        return 2 * self.vocabulary * self.width + self.width

    @property
    def params(self) -> int:
        return self.layers * self.block_params + self.root_params


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
"""Models by the ``preset`` of the training program. Source of Llama 2's shapes: arXiv 2307.09288."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a job of the training program trains, and how."""

    shape: ModelShape
    batch_size: int = DEFAULT_BATCH_SIZE
    """Sequences of one optimizer step, over all ranks."""
    accumulation: int = 1
    """Parts that a step is cut into."""
    precision: Precision = Precision.BF16
    strategy: Strategy = Strategy.FULL_SHARD
    activation_checkpointing: bool = False


def run_of(hyperparameters: Mapping[str, object]) -> Run | None:
    """The run that hyperparameters of the training program describe; None where they name no known model."""
    given = {key.replace("-", "_"): _plain(value) for key, value in hyperparameters.items()}
    shape = PRESETS.get(given.get("preset", ""))
    if shape is None:
        return None
    try:
        return Run(
            shape=replace(shape, sequence_length=_number(given, "sequence_length", shape.sequence_length)),
            batch_size=_number(given, "batch_size", DEFAULT_BATCH_SIZE),
            accumulation=_number(given, "gradient_accumulation_steps", 1),
            precision=Precision(given.get("precision", Precision.BF16)),
            strategy=Strategy(given.get("strategy", Strategy.FULL_SHARD)),
            activation_checkpointing=given.get("activation_checkpointing", "false").lower() == "true",
        )
    except ValueError:
        return None  # the training program refuses it, or knows more than we do


def _plain(value: object) -> str:
    """The SDK writes hyperparameters as JSON, plain boto3 as they are."""
    text = value if isinstance(value, str) else ""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return read if isinstance(read, str) else text


def _number(given: Mapping[str, str], key: str, default: int) -> int:
    if key not in given:
        return default
    text = given[key]
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_NUMBER or int(text) < 1:
        raise ValueError(f"{key} is no number from 1 on")
    return int(text)
