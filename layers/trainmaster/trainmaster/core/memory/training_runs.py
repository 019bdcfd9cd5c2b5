"""What a job of the training program trains, and how, as its hyperparameters say."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

DEFAULT_BATCH_SIZE = 8
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Matrices of a block that may have adapters."""
_SCALED_TOGETHER = 256
"""Neighbours in a row, of moments of a byte each."""
_LONGEST_NUMBER = 9
"""Digits; keeps the sums small."""


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"
    """Computes in bf16; weights, gradients and optimizer are fp32."""
    BF16_PURE = "bf16_pure"
    FLOAT8 = "float8"
    """As bf16, but matrices of the blocks are multiplied in float8; counted as bf16, which is never less."""
    FLOAT8_ROWWISE = "float8_rowwise"
    FLOAT8_EMULATED = "float8_emulated"
    FLOAT8_ROWWISE_EMULATED = "float8_rowwise_emulated"

    @classmethod
    def _missing_(cls, value: object) -> "Precision | None":
        """The program takes dashes for underscores."""
        return next((one for one in cls if one.value == str(value).replace("-", "_")), None)


class Optimizer(StrEnum):
    ADAMW = "adamw"
    ADAMW_8BIT = "adamw_8bit"
    """The moments of matrices take a byte each, and a scale for 256 of them."""
    MUON = "muon"
    """Matrices of the blocks have one moment, all else AdamW's two."""


class ReduceDtype(StrEnum):
    """What gradients are summed in over the ranks, where the weights are computed in bf16."""

    FP32 = "fp32"
    BF16 = "bf16"


class Strategy(StrEnum):
    """FSDP's words for what is divided among which ranks."""

    FULL_SHARD = "full_shard"
    SHARD_GRAD_OP = "shard_grad_op"
    """As full_shard, but the weights stay gathered from forward to backward."""
    HYBRID_SHARD = "hybrid_shard"
    """full_shard within a group of ranks, those of a host unless it says otherwise."""
    HYBRID_SHARD_ZERO2 = "hybrid_shard_zero2"
    NO_SHARD = "no_shard"
    TP = "tp"
    """Tensor parallel alone: all ranks work on the same sequences."""


class ActivationCheckpointing(StrEnum):
    """What is computed again in the backward pass instead of being kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """All but the costly operations: matrices and attention are kept."""
    FULL = "full"
    """Each block, from its input."""


class Parameters(NamedTuple):
    """Some parameters of one shape; a vector has one column. FSDP divides the rows."""

    number: int
    rows: int
    columns: int


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
    head_width: int = 0
    """0: width / heads."""
    qkv_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    head_norms: bool = False
    """Queries and keys are normed, head by head."""
    tied_head: bool = False
    """The head is the embedding."""

    def __post_init__(self) -> None:
        if not self.head_width:
            object.__setattr__(self, "head_width", self.width // self.heads)

    @property
    def query_width(self) -> int:
        return self.head_width * self.heads

    @property
    def kv_width(self) -> int:
        return self.head_width * self.kv_heads

    @property
    def block(self) -> tuple[Parameters, ...]:
        """Query, key, value and output; gate, up and output of the feed-forward layer; norms and biases."""
        return (
            Parameters(1, self.query_width, self.width),
            Parameters(1, self.width, self.query_width),
            Parameters(2, self.kv_width, self.width),
            Parameters(2, self.hidden, self.width),
            Parameters(1, self.width, self.hidden),
            Parameters(2, self.width, 1),
            *self._vectors,
        )

    @property
    def _vectors(self) -> tuple[Parameters, ...]:
        qkv, output, feed_forward = self.qkv_bias, self.output_bias, self.feed_forward_bias
        return (
            Parameters(qkv, self.query_width, 1),
            Parameters(2 * qkv, self.kv_width, 1),
            Parameters(2 * feed_forward, self.hidden, 1),
            Parameters(output + feed_forward, self.width, 1),
            Parameters(2 * self.head_norms, self.head_width, 1),
        )

    def adapters(self, targets: tuple[str, ...], rank: int) -> tuple[Parameters, ...]:
        """Of one block: two matrices beside each target, of its inputs and of its outputs."""
        sides = {
            "q_proj": (self.query_width, self.width),
            "k_proj": (self.kv_width, self.width),
            "v_proj": (self.kv_width, self.width),
            "o_proj": (self.width, self.query_width),
            "gate_proj": (self.hidden, self.width),
            "up_proj": (self.hidden, self.width),
            "down_proj": (self.width, self.hidden),
        }
        pairs = (sides[name] for name in targets)
        return tuple(
            one for outs, ins in pairs for one in (Parameters(1, rank, ins), Parameters(1, outs, rank))
        )

    @property
    def root(self) -> tuple[Parameters, ...]:
        """Embedding, head and the last norm."""
        matrices = 1 if self.tied_head else 2
        return (Parameters(matrices, self.vocabulary, self.width), Parameters(1, self.width, 1))

    @property
    def block_params(self) -> int:
        return _elements(self.block, shards=1)

    @property
    def root_params(self) -> int:
        return _elements(self.root, shards=1)

    @property
    def head_params(self) -> int:
        """With the last norm: a unit that stays gathered, as the backward pass begins with it."""
        return self.vocabulary * self.width + self.width

    @property
    def params(self) -> int:
        return self.largest_shard(1)

    def on_tensor_rank(self, ranks: int) -> "ModelShape":
        """What a rank has where so many divide each matrix: norms are whole, and heads that are shared."""
        return replace(
            self,
            heads=self.heads // ranks,
            kv_heads=self.kv_heads // ranks if self.kv_heads >= ranks else self.kv_heads,
            hidden=self.hidden // ranks,
            vocabulary=self.vocabulary // ranks,
        )

    def largest_shard(self, shards: int) -> int:
        """Elements on the rank that has most: of each parameter the rows are dealt out, rounded up.

        Source: PyTorch documentation, torch.distributed.fsdp.fully_shard: sharded like torch.chunk on
        dimension 0, and padded to even sizes.
        """
        return self.layers * _elements(self.block, shards) + _elements(self.root, shards)


def _elements(parameters: tuple[Parameters, ...], shards: int) -> int:
    return sum(one.number * -(-one.rows // shards) * one.columns for one in parameters)


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
    reduce_dtype: ReduceDtype = ReduceDtype.FP32
    strategy: Strategy = Strategy.FULL_SHARD
    shard_group_size: int = 0
    """Ranks of a group of a hybrid strategy; 0: those of a host."""
    tensor_parallel: int = 1
    """Ranks that divide each matrix; with strategy tp all of them do."""
    optimizer: Optimizer = Optimizer.ADAMW
    activation_checkpointing: ActivationCheckpointing = ActivationCheckpointing.NONE
    prefetch_blocks: int = 1
    """Gathered before they are needed; FSDP itself gathers one."""
    cpu_offload: bool = False
    """Weights, gradients and optimizer are in the memory of the host."""
    lora_rank: int = 0
    """Of the adapters that are trained instead of the model; 0: the model is."""
    lora_targets: tuple[str, ...] = LORA_TARGETS

    def trained_shard(self, shards: int) -> int:
        """Elements that are trained, on the rank that has most of them."""
        if not self.lora_rank:
            return self.shape.largest_shard(shards)
        return self.shape.layers * _elements(self.shape.adapters(self.lora_targets, self.lora_rank), shards)

    def moment_bytes(self, shards: int) -> int:
        """Of the optimizer, on the rank that has most; in bf16_pure the rest of Kahan's sum is among them."""
        if self.precision is Precision.BF16_PURE:
            return 6 * self.trained_shard(shards)
        block = self.shape.adapters(self.lora_targets, self.lora_rank) if self.lora_rank else self.shape.block
        in_blocks = sum(self._moments(one, shards, in_block=True) for one in block)
        root = () if self.lora_rank else self.shape.root
        return self.shape.layers * in_blocks + sum(self._moments(one, shards, in_block=False) for one in root)

    def _moments(self, one: Parameters, shards: int, *, in_block: bool) -> int:
        rows, is_matrix = one.number * -(-one.rows // shards), one.columns > 1
        if is_matrix and self.optimizer is Optimizer.ADAMW_8BIT:
            return rows * (2 * one.columns + 8 * -(-one.columns // _SCALED_TOGETHER))
        has_one = is_matrix and in_block and self.optimizer is Optimizer.MUON
        return rows * one.columns * (4 if has_one else 8)

    @property
    def trained_in_block(self) -> int:
        return self.trained_shard(1) // self.shape.layers if self.lora_rank else self.shape.block_params


def run_of(hyperparameters: Mapping[str, object]) -> Run | None:
    """The run that hyperparameters of the training program describe; None where they name no known model."""
    given = {key.replace("-", "_"): _plain(value) for key, value in hyperparameters.items()}
    shape = PRESETS.get(given.get("preset", ""))
    if shape is None:
        return None
    try:
        length = _number(given, "sequence_length", 0, at_least=0)
        return Run(
            shape=replace(shape, sequence_length=length or shape.sequence_length),
            batch_size=_number(given, "batch_size", DEFAULT_BATCH_SIZE),
            accumulation=_number(given, "gradient_accumulation_steps", 1),
            precision=Precision(given.get("precision", Precision.BF16)),
            reduce_dtype=ReduceDtype(given.get("reduce_dtype", ReduceDtype.FP32)),
            strategy=_strategy(given),
            shard_group_size=_number(given, "shard_group_size", 0, at_least=0),
            tensor_parallel=_number(given, "tensor_parallel", 1),
            optimizer=Optimizer(given.get("optimizer", Optimizer.ADAMW)),
            activation_checkpointing=_activation_checkpointing(given),
            prefetch_blocks=_number(given, "prefetch_blocks", 1, at_least=0),
            cpu_offload=_TRUTHS[given.get("cpu_offload", "false").lower()],
            lora_rank=_number(given, "lora_rank", 0, at_least=0),
            lora_targets=_targets(given.get("lora_targets", "all")),
        )
    except (ValueError, KeyError):
        return None  # the training program refuses it, or knows more than we do


_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _strategy(given: Mapping[str, str]) -> Strategy:
    """The program takes FSDP1's names too: FULL_SHARD, _HYBRID_SHARD_ZERO2, and `sharding_strategy`."""
    text = given.get("strategy", given.get("sharding_strategy", Strategy.FULL_SHARD))
    return Strategy(text.lower().removeprefix("_"))


def _activation_checkpointing(given: Mapping[str, str]) -> ActivationCheckpointing:
    """It may be a yes or no."""
    words = {"true": ActivationCheckpointing.FULL, "false": ActivationCheckpointing.NONE}
    text = given.get("activation_checkpointing", ActivationCheckpointing.NONE)
    return words.get(text.lower()) or ActivationCheckpointing(text)


def _targets(text: str) -> tuple[str, ...]:
    """Raises ValueError."""
    named = LORA_TARGETS if text == "all" else tuple(text.split(","))
    if set(named) - set(LORA_TARGETS):
        raise ValueError("lora_targets names no matrix of a block")
    return tuple(name for name in LORA_TARGETS if name in named)


def _plain(value: object) -> str:
    """The SDK writes hyperparameters as JSON, plain boto3 as they are."""
    text = value if isinstance(value, str) else ""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return read if isinstance(read, str) else text


def _number(given: Mapping[str, str], key: str, default: int, *, at_least: int = 1) -> int:
    if key not in given:
        return default
    text = given[key]
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_NUMBER or int(text) < at_least:
        raise ValueError(f"{key} is not a whole number of {at_least} or more")
    return int(text)
