"""Multiply the matrices of the blocks in float8, by torchao, where that gains, and gather them so by FSDP.

Each factor is scaled by its largest value of that moment. Weights, gradients and optimizer stay as with
precision bf16, under the same names, so checkpoints of both are the same.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from training.config import TrainConfig
from training.config.choices import Precision, Strategy
from training.config.sections import ParallelOptions
from training.errors import ConfigError, MissingPackageError, UnsupportedDeviceError
from training.metrics import Event
from training.ranks.meshes import ranks_of_a_copy
from training.ranks.world import World, tell

_CAPABILITY = (8, 9)
"""Compute capability of the first GPUs that multiply float8, by tensor and by row (PyTorch, ATen:
RowwiseScaledMM.cu)."""
_MULTIPLE = 16
"""Number by which every side of a product must divide (PyTorch, torch._scaled_mm)."""
_GAIN_NOTHING: Mapping[Precision, Sequence[tuple[float, float]]] = {
    Precision.FLOAT8: ((1024, 4096),),
    Precision.FLOAT8_ROWWISE: ((2048, math.inf), (math.inf, 1024), (4096, 2048)),
    Precision.FLOAT8_EMULATED: (),
    Precision.FLOAT8_ROWWISE_EMULATED: (),
}
"""Rows and columns of a weight up to which scaling costs more than float8 saves, on H100 (torchao 0.18,
float8_linear_utils._auto_filter_for_recipe). Emulated float8 gains at no size, so no matrix is too small."""
_BLOCKS = "blocks."
_NOISE = ("Failed to load ", "Skipping import of cpp extensions", "register_constant() on Enum")
"""Warnings of torchao's import: none of the extensions that it misses is needed to train in float8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Matrices of a model that are multiplied in float8, and those that are not."""

    taken: frozenset[str]
    """Names of the matrices in float8."""
    left: Mapping[str, int]
    """Number of matrices that stay in bf16, by the reason."""


def convert(model: nn.Module, config: TrainConfig, world: World) -> None:
    """Convert a model's matrices before it is sharded, on the meta device. Every rank calls; the first logs.

    Raises:
        UnsupportedDeviceError: The device cannot multiply in float8.
        ConfigError: Nothing would be in float8, or the tokens of a part do not divide.
        MissingPackageError: torchao is not installed.
    """
    refuse_device(config.precision, world.device)
    choice = chosen({name: tuple(layer.weight.shape) for name, layer in _matrices(model)}, config.precision)
    if problems := [*_matrix_problems(choice, config), *_token_problems(config, world)]:
        raise ConfigError(problems)
    why = _kept_from_gathering(model, choice, config, world)
    _replace(model, choice, config.precision, gathers=not why)
    left = ", ".join(f"{number} {reason}" for reason, number in choice.left.items())
    gathered = f"bf16: {why}" if why else "float8"
    tell(world, Event.FLOAT8, matrices=len(choice.taken), left_in_bf16=left or "none", gathered=gathered)


def refuse_device(precision: Precision, device: torch.device) -> None:
    """Refuse a device that cannot multiply in float8. Raises UnsupportedDeviceError."""
    if precision.is_emulated:
        return
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        if capability >= _CAPABILITY:
            return
        here = f"{torch.cuda.get_device_name(device)} has {'.'.join(map(str, capability))}"
    else:
        here = f"this rank's device is a {device.type}"
    least = ".".join(map(str, _CAPABILITY))
    raise UnsupportedDeviceError(
        f"precision {precision} needs a GPU that multiplies float8 (compute capability {least} or above: L4, "
        f"L40S, H100, H200, B200), and {here}: set precision bf16, or {precision}_emulated to see what "
        "float8 does to the loss"
    )


def chosen(shapes: Mapping[str, tuple[int, ...]], precision: Precision) -> Choice:
    """Choose among matrices by their names and shapes: (rows, columns) as ``nn.Linear`` has them."""
    reasons = {name: _reason_against(*shape, precision=precision) for name, shape in shapes.items()}
    left = Counter(reason for reason in reasons.values() if reason)
    return Choice(taken=frozenset(name for name, reason in reasons.items() if not reason), left=dict(left))


def _reason_against(rows: int, columns: int, *, precision: Precision) -> str:
    """Return why a matrix is not multiplied in float8; empty: it is."""
    if rows % _MULTIPLE or columns % _MULTIPLE:
        return f"of {rows} x {columns} do not divide by {_MULTIPLE}"
    if any(rows <= most and columns <= wide for most, wide in _GAIN_NOTHING[precision]):
        return f"of {rows} x {columns} are too small to gain"
    return ""


def _matrix_problems(choice: Choice, config: TrainConfig) -> list[str]:
    if choice.taken:
        return []
    why = ", ".join(choice.left)
    return [f"precision {config.precision} would change nothing: matrices {why}; set precision bf16"]


def _token_problems(config: TrainConfig, world: World) -> list[str]:
    """Refuse numbers of tokens that float8 cannot multiply.

    Gradients of weights are sums over the tokens that a rank has at once, so these are a side of a product,
    too.
    """
    tokens = config.tokens_per_step // (world.size * config.gradient_accumulation_steps)
    if tokens % _MULTIPLE == 0:
        return []
    wanted = f"precision {config.precision} needs tokens that divide by {_MULTIPLE}"
    remedy = "change batch_size, sequence_length or gradient_accumulation_steps"
    return [f"{wanted}, and a rank has {tokens} at once: {remedy}"]


def gathers_float8(config: ParallelOptions) -> bool:
    """Tell whether weights are gathered in float8, as far as the options decide it."""
    by_tensor = config.precision.is_float8 and not config.precision.is_rowwise
    shards = config.strategy is not Strategy.NO_SHARD and not config.cpu_offload
    return by_tensor and shards and config.float8_all_gather


def _kept_from_gathering(model: nn.Module, choice: Choice, config: TrainConfig, world: World) -> str:
    """Return why weights are gathered in bf16; empty: they are gathered in float8."""
    if config.precision.is_rowwise:
        return "scales of rows follow from whole weights"
    if not gathers_float8(config):
        return "float8_all_gather false, cpu_offload true or strategy no_shard"
    ranks = ranks_of_a_copy(config, world)
    if any(layer.weight.shape[0] % ranks for name, layer in _matrices(model) if name in choice.taken):
        return f"rows do not divide by {ranks} ranks"
    return ""


def precompute_scales(model: nn.Module) -> None:
    """Compute the scales of all weights in one reduction, instead of one for each weight that is gathered.

    Every rank calls it after the weights have changed. It does nothing unless weights are gathered in float8.
    """
    _torchao().precompute_float8_dynamic_scale_for_fsdp(model)


def _matrices(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    """Yield the matrices of the blocks.

    Embedding and head stay in bf16: nothing after them could make up for their rounding.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name.startswith(_BLOCKS):
            yield name, module


def _replace(model: nn.Module, choice: Choice, precision: Precision, *, gathers: bool) -> None:
    library = _torchao()
    recipe = "rowwise" if precision.is_rowwise else "tensorwise"
    made = library.Float8LinearConfig.from_recipe_name(recipe)
    made = replace(made, emulate=precision.is_emulated, enable_fsdp_float8_all_gather=gathers)
    library.convert_to_float8_training(
        model, config=made, module_filter_fn=lambda _, name: name in choice.taken
    )


def _torchao() -> Any:  # noqa: ANN401  a module
    """Import torchao. Raises MissingPackageError."""
    with _without_noise():
        try:
            from torchao import float8  # noqa: PLC0415  an extra
        except ModuleNotFoundError as error:
            if error.name != "torchao":
                raise
            raise MissingPackageError(what="matrices in float8", packages=["torchao"]) from error
    return float8


@contextmanager
def _without_noise() -> Iterator[None]:
    def is_news(record: logging.LogRecord) -> bool:
        return not any(words in record.getMessage() for words in _NOISE)

    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    for logger in loggers:
        logger.addFilter(is_news)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_news)
