"""Options that cannot be meant together, or not with the PyTorch that is installed.

What depends on the number of ranks is judged with it. No torch here: an old one is refused before it is
loaded, and before the ranks meet.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from training.config.choices import (
    SYNTHETIC,
    Compile,
    DeviceName,
    Objective,
    OptimizerName,
    Precision,
    ReduceDtype,
    Strategy,
)
from training.config.decoder_layout import PROJECTIONS
from training.config.reader import shown
from training.config.train_config import TrainConfig
from training.config.vision_layout import not_expressible
from training.errors import UnsupportedTorchError

TORCH_FLOOR = (2, 9)
"""Tried with it: `make test-torch TORCH_VERSION=2.9.1`. Before it FSDP2 lacks what sums gradients on CPUs."""

Version = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """An option does not work from one version up to, not including, another."""

    option: str
    value: object
    since: Version
    until: Version
    remedy: str


_LIMITS: Sequence[_Limit] = (
    # Its `replicate` takes neither a mesh of one dimension nor several modules at once.
    _Limit(
        option="strategy",
        value=Strategy.NO_SHARD,
        since=TORCH_FLOOR,
        until=(2, 11),
        remedy="strategy shard_grad_op",
    ),
    # Its DefaultStager cannot copy DTensors: KeyError: <class 'type'>.
    _Limit(
        option="checkpoint_async", value=True, since=(2, 11), until=(2, 13), remedy="checkpoint_async false"
    ),
)


def contradictions(config: TrainConfig) -> list[str]:
    """What is wrong, of each contradiction the options to change."""
    found = []
    is_on_trainium = config.device is DeviceName.NEURON
    if config.reduce_dtype is ReduceDtype.BF16 and config.precision is Precision.FP32:
        found.append("reduce_dtype bf16 needs a precision other than fp32")
    if config.shard_group_size and not config.strategy.is_hybrid:
        found.append(
            f"shard_group_size needs strategy {' or '.join(sorted(one for one in Strategy if one.is_hybrid))}"
        )
    pure = {Precision.BF16_PURE, Precision.AUTO} if is_on_trainium else {Precision.BF16_PURE}
    if config.precision in pure and config.optimizer is not OptimizerName.ADAMW:
        found.append(f"optimizer {config.optimizer} needs fp32 weights, which precision bf16_pure has not")
    if config.precision.is_float8 and config.lora_rank:
        found.append(
            f"precision {config.precision} does not go with lora_rank: adapters are too small to gain; "
            "set precision bf16"
        )
    if config.cpu_offload and config.optimizer is OptimizerName.MUON:
        found.append("cpu_offload does not go with optimizer muon, which gathers matrices on the GPU")
    if config.find_nonfinite and config.compile is not Compile.NONE:
        found.append("find_nonfinite needs compile none: it looks into each module")
    found += _of_trainium(config) if is_on_trainium else []
    found += _of_tensor_parallel(config)
    found += _of_evaluation(config)
    found += _of_adapters(config)
    found += _of_images(config) if config.has_images else _of_text(config)
    if config.cpu_offload and config.strategy is Strategy.NO_SHARD:
        found.append("cpu_offload needs a strategy that shards")
    return found


def _of_trainium(config: TrainConfig) -> list[str]:
    """What is made for CPUs and GPUs, or would have the device compile again and again."""
    wanted = {
        "precision bf16_pure": config.precision in {Precision.BF16_PURE, Precision.AUTO},
        "compile none": config.compile is Compile.NONE,
        "cpu_offload false": not config.cpu_offload,
        "document_mask false": not config.document_mask,
        "find_nonfinite false": not config.find_nonfinite,
        "a strategy other than tp": config.strategy is not Strategy.TP,
        "tensor_parallel 1": config.tensor_parallel == 1,
    }
    return [f"device neuron needs {option}" for option, is_so in wanted.items() if not is_so]


def _of_tensor_parallel(config: TrainConfig) -> list[str]:
    is_alone = config.strategy is Strategy.TP
    if not is_alone and config.tensor_parallel == 1:
        return []
    found = []
    asked = "strategy tp" if is_alone else "tensor_parallel"
    if is_alone and config.tensor_parallel > 1:
        found.append(
            "strategy tp divides among all ranks: leave tensor_parallel out, or take full_shard with it"
        )
    if config.optimizer is OptimizerName.ADAMW_8BIT:
        found.append(f"optimizer adamw_8bit does not go with {asked}: its scales are of uncut rows")
    if config.precision.is_float8:
        found.append(f"precision {config.precision} does not go with {asked}: it was never run so")
    if config.lora_rank:
        found.append(f"lora_rank does not go with {asked}: divide adapters with full_shard")
    return found


def _of_evaluation(config: TrainConfig) -> list[str]:
    found = []
    if config.eval_data and not config.eval_every:
        found.append("eval_data needs eval_every: the steps between evaluations")
    if config.eval_every and not config.eval_data and config.data != SYNTHETIC:
        found.append(
            "eval_every needs eval_data, e.g. the folder validation that prepare --validation-share writes"
        )
    if config.eval_every and not config.eval_batches and (config.eval_data or config.data) == SYNTHETIC:
        found.append("eval_batches 0 needs eval_data of shards: synthetic data has no end")
    if config.document_mask and config.data == SYNTHETIC:
        found.append("document_mask needs data of shards: synthetic data has no documents")
    return found


def _of_text(config: TrainConfig) -> list[str]:
    """Options that only images have."""
    usual = {
        "objective": Objective.CLASSIFY,
        "image_size": 0,
        "classes": 0,
        "label_smoothing": 0.0,
        "new_head": False,
    }
    given = [name for name, value in usual.items() if getattr(config, name) != value]
    return [f"{name} needs a model of images, e.g. preset vit-tiny" for name in given]


def _of_images(config: TrainConfig) -> list[str]:
    """Options that only texts have, and sizes of images that do not come out even."""
    shape, found = config.image_shape, []
    usual = {
        "sequence_length": 0,
        "document_mask": False,
        "loss_chunk": 0,
        "z_loss": 0.0,
        "lora_rank": 0,
    }
    for name, value in usual.items():
        if getattr(config, name) != value:
            found.append(f"{name} is for texts; preset {config.model_name} is of images")
    if shape.image_size % shape.patch:
        found.append(f"image_size {shape.image_size} does not divide by the model's patch of {shape.patch}")
    if config.new_head and not config.init_from:
        found.append("new_head needs init_from: the weights whose head is left out")
    if config.export and (strange := not_expressible(shape)):
        found.append(
            f"export cannot write {config.model_name} as transformers' ViT, which has no "
            f"{' and no '.join(strange)}: set export false and keep the checkpoint"
        )
    return found + _of_objective(config)


def _of_objective(config: TrainConfig) -> list[str]:
    found = []
    is_masked = config.objective is Objective.MASKED
    if is_masked and not 0 < config.mask_share < 1:
        found.append(f"mask_share must be between 0 and 1, not {config.mask_share}")
    if is_masked and config.label_smoothing:
        found.append("label_smoothing needs objective classify")
    if config.label_smoothing >= 1:
        found.append(f"label_smoothing must be below 1, not {config.label_smoothing}")
    return found


def _of_adapters(config: TrainConfig) -> list[str]:
    found = []
    if config.lora_rank and not config.init_from:
        found.append("lora_rank needs init_from: adapters are trained beside weights that are there")
    unknown = set(config.lora_targets.split(",")) - {"all", *PROJECTIONS}
    if unknown:
        told = ", ".join(shown(one) for one in sorted(unknown))
        found.append(f"lora_targets must be all or some of {', '.join(PROJECTIONS)}, not {told}")
    return found


def refuse_unsupported_torch(config: TrainConfig) -> None:
    """Raises UnsupportedTorchError: with all that the installed torch cannot do of this."""
    try:
        found = version("torch")
    except PackageNotFoundError:
        found = ""
    if problems := unsupported(config, found):
        raise UnsupportedTorchError(problems)


def unsupported(config: TrainConfig, found: str) -> list[str]:
    """``found``: as the installed package says it, `2.13.0+cpu`; empty: there is none."""
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None:
        return [f"torch is not installed, and the program needs {_said(TORCH_FLOOR)} or newer"]
    here = (int(numbers[1]), int(numbers[2]))
    if here < TORCH_FLOOR:
        return [f"torch {found} is installed, and the program needs {_said(TORCH_FLOOR)} or newer"]
    return [
        f"{one.option} {str(one.value).lower()} needs torch {_said(one.until)} or newer, "
        f"and {found} is installed; or set {one.remedy}"
        for one in _LIMITS
        if getattr(config, one.option) == one.value and one.since <= here < one.until
    ]


def _said(which: Version) -> str:
    return ".".join(map(str, which))
