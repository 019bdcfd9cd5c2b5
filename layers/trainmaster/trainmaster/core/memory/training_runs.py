"""The model, batch, strategy and precision of a training program's job, read from its hyperparameters."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.program_shapes import (
    ActivationCheckpointing,
    Objective,
    OptimizerName,
    Precision,
    ReduceDtype,
    Strategy,
)
from trainmaster.core.memory.transformer_shapes import Parameters, elements
from trainmaster.core.memory.vision_shapes import EVERY_PRESET, Shape, VisionShape

DEFAULT_BATCH_SIZE = 8
LORA_TARGETS = tuple(PRESETS["tiny"].matrices)
"""Names of the matrices of a block that may have adapters; all decoders have the same."""
_SCALED_TOGETHER = 256
"""Neighbours in a row that share a scale, if moments take a byte each."""
_LONGEST_NUMBER = 9
"""Digits of a hyperparameter; keeps the sums small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job of the training program: its model and how it is trained."""

    shape: Shape
    batch_size: int = DEFAULT_BATCH_SIZE
    """Sequences or images of one optimizer step, over all ranks."""
    accumulation: int = 1
    """Parts that a step is cut into."""
    precision: Precision = Precision.AUTO
    reduce_dtype: ReduceDtype = ReduceDtype.FP32
    strategy: Strategy = Strategy.FULL_SHARD
    shard_group_size: int = 0
    """Ranks of a group of a hybrid strategy; 0: those of a host."""
    tensor_parallel: int = 1
    """Ranks that divide each matrix; with strategy tp all of them do."""
    optimizer: OptimizerName = OptimizerName.ADAMW
    activation_checkpointing: ActivationCheckpointing = ActivationCheckpointing.NONE
    min_unit_params: int = 0
    """Blocks are gathered together until they have so many parameters; 0: each by itself."""
    prefetch_blocks: int = 1
    """Blocks gathered before they are needed; FSDP itself gathers one."""
    cpu_offload: bool = False
    """Weights, gradients and optimizer are in the memory of the host."""
    lora_rank: int = 0
    """Rank of the adapters that are trained instead of the model; 0: the model itself is trained."""
    lora_targets: tuple[str, ...] = LORA_TARGETS

    def on(self, *, gpus_with_bf16: bool) -> "Run":
        """Replace precision ``auto`` by what the program chooses on such GPUs."""
        if self.precision is not Precision.AUTO:
            return self
        return replace(self, precision=Precision.BF16 if gpus_with_bf16 else Precision.FP32)

    @property
    def computed_width(self) -> int:
        """Return the bytes of a number that matrices are multiplied in; float8 is counted as bf16."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def summed_width(self) -> int:
        """Return the bytes of a number of a gradient on its way to other ranks."""
        is_wide = self.precision is Precision.FP32 or self.reduce_dtype is ReduceDtype.FP32
        return 4 if is_wide else 2

    def trained_shard(self, shards: int) -> int:
        """Count the trained elements on the rank that has most of them."""
        if not self.lora_rank:
            return self.shape.largest_shard(shards)
        return self.shape.layers * elements(self.shape.adapters(self.lora_targets, self.lora_rank), shards)

    def moment_bytes(self, shards: int) -> int:
        """Return the optimizer's bytes on the rank that has most; bf16_pure adds the rest of Kahan's sum."""
        if self.precision is Precision.BF16_PURE:
            return 6 * self.trained_shard(shards)
        block = self.shape.adapters(self.lora_targets, self.lora_rank) if self.lora_rank else self.shape.block
        in_blocks = sum(self._moments(parameters, shards, in_block=True) for parameters in block)
        root = () if self.lora_rank else self.shape.root
        return self.shape.layers * in_blocks + sum(
            self._moments(parameters, shards, in_block=False) for parameters in root
        )

    def _moments(self, parameters: Parameters, shards: int, *, in_block: bool) -> int:
        rows, is_matrix = parameters.number * -(-parameters.rows // shards), parameters.columns > 1
        if is_matrix and parameters.is_flat and self.optimizer is OptimizerName.ADAMW_8BIT:
            return rows * (2 * parameters.columns + 8 * -(-parameters.columns // _SCALED_TOGETHER))
        has_one = is_matrix and in_block and self.optimizer is OptimizerName.MUON
        return rows * parameters.columns * (4 if has_one else 8)

    @property
    def blocks_of_a_unit(self) -> int:
        """Count the neighbouring blocks that are gathered together."""
        enough = -(-self.min_unit_params // max(1, self.shape.block_params))
        return min(max(1, enough), self.shape.layers)

    @property
    def trained_in_block(self) -> int:
        return self.trained_shard(1) // self.shape.layers if self.lora_rank else self.shape.block_params


def run_of(hyperparameters: Mapping[str, object]) -> Run | None:
    """Read the run that the training program's hyperparameters describe; None if they name no known model."""
    given = {key.replace("-", "_"): _plain(value) for key, value in hyperparameters.items()}
    shape = EVERY_PRESET.get(given.get("preset", ""))
    if shape is None:
        return None
    try:
        return Run(
            shape=_shaped(shape, given),
            batch_size=_number(given, "batch_size", DEFAULT_BATCH_SIZE),
            accumulation=_number(given, "gradient_accumulation_steps", 1),
            precision=Precision(given.get("precision", Precision.AUTO)),
            reduce_dtype=ReduceDtype(given.get("reduce_dtype", ReduceDtype.FP32)),
            strategy=_strategy(given),
            shard_group_size=_number(given, "shard_group_size", 0, at_least=0),
            tensor_parallel=_number(given, "tensor_parallel", 1),
            optimizer=OptimizerName(given.get("optimizer", OptimizerName.ADAMW)),
            activation_checkpointing=_activation_checkpointing(given),
            min_unit_params=_number(given, "min_unit_params", 0, at_least=0),
            prefetch_blocks=_number(given, "prefetch_blocks", 1, at_least=0),
            cpu_offload=_TRUTHS[given.get("cpu_offload", "false").lower()],
            lora_rank=_number(given, "lora_rank", 0, at_least=0),
            lora_targets=_targets(given.get("lora_targets", "all")),
        )
    except (ValueError, KeyError):
        return None  # the training program refuses it, or knows more than we do


def _shaped(shape: Shape, given: Mapping[str, str]) -> Shape:
    length, side, classes = (
        _number(given, name, 0, at_least=0) for name in ("sequence_length", "image_size", "classes")
    )
    objective = Objective(given.get("objective", Objective.CLASSIFY))
    return shape_of(shape, sequence_length=length, image_size=side, classes=classes, objective=objective)


def shape_of(
    shape: Shape, *, sequence_length: int, image_size: int, classes: int, objective: Objective
) -> Shape:
    """Change a preset's shape by options; 0 keeps the preset's value.

    Raises:
        ValueError: The option is of the other family, or an image does not divide into patches.
    """
    if not isinstance(shape, VisionShape):
        if image_size or classes or objective is not Objective.CLASSIFY:
            raise ValueError("image_size, classes and objective are for presets of images")
        return replace(shape, sequence_length=sequence_length or shape.sequence_length)
    side = image_size or shape.image_size
    if sequence_length:
        raise ValueError("sequence_length is for presets of texts")
    if side % shape.patch:
        raise ValueError(f"image_size {side} does not divide by the model's patch of {shape.patch}")
    is_masked = objective is Objective.MASKED
    return replace(shape, image_size=side, classes=classes or shape.classes, masked=float(is_masked))


_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _strategy(given: Mapping[str, str]) -> Strategy:
    """Read the strategy.

    The program takes FSDP1's names too: FULL_SHARD, _HYBRID_SHARD_ZERO2, and `sharding_strategy`.
    """
    text = given.get("strategy", given.get("sharding_strategy", Strategy.FULL_SHARD))
    return Strategy(text.lower().removeprefix("_"))


def _activation_checkpointing(given: Mapping[str, str]) -> ActivationCheckpointing:
    """Read activation checkpointing, which may also be true or false."""
    words = {"true": ActivationCheckpointing.FULL, "false": ActivationCheckpointing.NONE}
    text = given.get("activation_checkpointing", ActivationCheckpointing.NONE)
    return words.get(text.lower()) or ActivationCheckpointing(text)


def _targets(text: str) -> tuple[str, ...]:
    """Read the matrices that get adapters, in the order of ``LORA_TARGETS``. Raises ValueError."""
    named = LORA_TARGETS if text == "all" else tuple(text.split(","))
    if set(named) - set(LORA_TARGETS):
        raise ValueError("lora_targets names no matrix of a block")
    return tuple(name for name in LORA_TARGETS if name in named)


def _plain(value: object) -> str:
    """Return a hyperparameter as text: the SDK writes JSON, plain boto3 writes it as it is."""
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
