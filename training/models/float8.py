"""Matrices of the blocks in float8, by torchao: which of them gain, who may, and how FSDP gathers them.

What is multiplied is scaled by its largest value of that moment. Weights, gradients and optimizer stay as
with precision bf16, under the same names, so checkpoints of both are the same.
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
from training.errors import ConfigError, MissingPackageError, UnsupportedDeviceError
from training.metrics import Event
from training.ranks.meshes import ranks_of_a_copy
from training.ranks.world import World, tell

_CAPABILITY = (8, 9)
"""Of the first GPUs that multiply float8, by tensor and by row (PyTorch, ATen: RowwiseScaledMM.cu)."""
_MULTIPLE = 16
"""Every side of a product divides by it (PyTorch, torch._scaled_mm)."""
_GAIN_NOTHING: Mapping[Precision, Sequence[tuple[float, float]]] = {
    Precision.FLOAT8: ((1024, 4096),),
    Precision.FLOAT8_ROWWISE: ((2048, math.inf), (math.inf, 1024), (4096, 2048)),
    Precision.FLOAT8_EMULATED: (),
    Precision.FLOAT8_ROWWISE_EMULATED: (),
}
"""Rows and columns of a weight up to which scaling costs more than float8 saves, on H100 (torchao 0.18,
float8_linear_utils._auto_filter_for_recipe). What is emulated gains at no size, so none is too small."""
_BLOCKS = "blocks."
_NOISE = ("Failed to load ", "Skipping import of cpp extensions", "register_constant() on Enum")
"""Of torchao's import: none of the extensions it misses is for training in float8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What becomes of the matrices of a model."""

    taken: frozenset[str]
    """The names of those in float8."""
    left: Mapping[str, int]
    """How many stay in bf16, by the reason."""


def convert(model: nn.Module, config: TrainConfig, world: World) -> None:
    """Before the model is sharded, on the meta device; every rank calls, and the first one tells.

    Raises:
        UnsupportedDeviceError: It has no float8.
        ConfigError: Nothing would be in float8, or the tokens of a part do not divide.
        MissingPackageError: torchao is not installed.
    """
    refuse_device(config.precision, world.device)
    choice = chosen({name: tuple(one.weight.shape) for name, one in _matrices(model)}, config.precision)
    if problems := [*_of_matrices(choice, config), *_of_tokens(config, world)]:
        raise ConfigError(problems)
    why = _kept_from_gathering(model, choice, config, world)
    _replace(model, choice, config.precision, gathers=not why)
    left = ", ".join(f"{number} {reason}" for reason, number in choice.left.items())
    gathered = f"bf16: {why}" if why else "float8"
    tell(world, Event.FLOAT8, matrices=len(choice.taken), left_in_bf16=left or "none", gathered=gathered)


def refuse_device(precision: Precision, device: torch.device) -> None:
    """Raises UnsupportedDeviceError: this one cannot multiply in float8."""
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
    """Of matrices by their names, each of (rows, columns) as ``nn.Linear`` has them."""
    reasons = {name: _reason_against(*shape, precision=precision) for name, shape in shapes.items()}
    left = Counter(reason for reason in reasons.values() if reason)
    return Choice(taken=frozenset(name for name, reason in reasons.items() if not reason), left=dict(left))


def _reason_against(rows: int, columns: int, *, precision: Precision) -> str:
    """Empty: there is none."""
    if rows % _MULTIPLE or columns % _MULTIPLE:
        return f"of {rows} x {columns} do not divide by {_MULTIPLE}"
    if any(rows <= most and columns <= wide for most, wide in _GAIN_NOTHING[precision]):
        return f"of {rows} x {columns} are too small to gain"
    return ""


def _of_matrices(choice: Choice, config: TrainConfig) -> list[str]:
    if choice.taken:
        return []
    why = ", ".join(choice.left)
    return [f"precision {config.precision} would change nothing: matrices {why}; set precision bf16"]


def _of_tokens(config: TrainConfig, world: World) -> list[str]:
    """Gradients of weights are sums over the tokens that a rank has at once: a side of a product, too."""
    tokens = config.tokens_per_step // (world.size * config.gradient_accumulation_steps)
    if tokens % _MULTIPLE == 0:
        return []
    wanted = f"precision {config.precision} needs tokens that divide by {_MULTIPLE}"
    remedy = "change batch_size, sequence_length or gradient_accumulation_steps"
    return [f"{wanted}, and a rank has {tokens} at once: {remedy}"]


def gathers_float8(config: TrainConfig) -> bool:
    """As far as the options say."""
    by_tensor = config.precision.is_float8 and not config.precision.is_rowwise
    shards = config.strategy is not Strategy.NO_SHARD and not config.cpu_offload
    return by_tensor and shards and config.float8_all_gather


def _kept_from_gathering(model: nn.Module, choice: Choice, config: TrainConfig, world: World) -> str:
    """Why weights are gathered in bf16; empty: they are gathered in float8."""
    if config.precision.is_rowwise:
        return "scales of rows follow from whole weights"
    if not gathers_float8(config):
        return "float8_all_gather false, cpu_offload true or strategy no_shard"
    ranks = ranks_of_a_copy(config, world)
    if any(one.weight.shape[0] % ranks for name, one in _matrices(model) if name in choice.taken):
        return f"rows do not divide by {ranks} ranks"
    return ""


def precompute_scales(model: nn.Module) -> None:
    """After the weights have changed: one reduction for the scales of all, not one for each that is gathered.

    Of a model whose weights are not gathered in float8 nothing is done. Every rank calls.
    """
    _torchao().precompute_float8_dynamic_scale_for_fsdp(model)


def _matrices(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    """Of the blocks: embedding and head stay in bf16, as what they round is never made up for."""
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
    """Raises MissingPackageError."""
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
    for one in loggers:
        one.addFilter(is_news)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(is_news)
