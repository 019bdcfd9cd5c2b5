"""Options that contradict each other, or the PyTorch that is installed.

Contradictions that depend on the number of ranks are found where that is known. Nothing here imports torch:
an old one is refused before it is loaded, and before the ranks meet.
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
"""The oldest version that it was tried with: `make test-torch TORCH_VERSION=2.9.1`. Earlier ones lack the sum
of gradients on CPUs in FSDP2."""

Version = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """A value of an option that does not work from one version of torch up to, not including, another."""

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
    """Return a message for each contradiction, with the options to change."""
    problems = []
    is_on_trainium = config.device is DeviceName.NEURON
    if config.reduce_dtype is ReduceDtype.BF16 and config.precision is Precision.FP32:
        problems.append("reduce_dtype bf16 needs a precision other than fp32")
    if config.shard_group_size and not config.strategy.is_hybrid:
        hybrid = sorted(strategy for strategy in Strategy if strategy.is_hybrid)
        problems.append(f"shard_group_size needs strategy {' or '.join(hybrid)}")
    pure = {Precision.BF16_PURE, Precision.AUTO} if is_on_trainium else {Precision.BF16_PURE}
    if config.precision in pure and config.optimizer is not OptimizerName.ADAMW:
        problems.append(f"optimizer {config.optimizer} needs fp32 weights, which precision bf16_pure has not")
    if config.precision.is_float8 and config.lora_rank:
        problems.append(
            f"precision {config.precision} does not go with lora_rank: adapters are too small to gain; "
            "set precision bf16"
        )
    if config.cpu_offload and config.optimizer is OptimizerName.MUON:
        problems.append("cpu_offload does not go with optimizer muon, which gathers matrices on the GPU")
    if config.find_nonfinite and config.compile is not Compile.NONE:
        problems.append("find_nonfinite needs compile none: it looks into each module")
    problems += _trainium_problems(config) if is_on_trainium else []
    problems += _tensor_parallel_problems(config)
    problems += _evaluation_problems(config)
    problems += _adapter_problems(config)
    problems += _image_problems(config) if config.has_images else _text_problems(config)
    if config.cpu_offload and config.strategy is Strategy.NO_SHARD:
        problems.append("cpu_offload needs a strategy that shards")
    return problems


def _trainium_problems(config: TrainConfig) -> list[str]:
    """Refuse options that only CPUs and GPUs have, or that would have the device compile again and again."""
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


def _tensor_parallel_problems(config: TrainConfig) -> list[str]:
    is_alone = config.strategy is Strategy.TP
    if not is_alone and config.tensor_parallel == 1:
        return []
    problems = []
    option = "strategy tp" if is_alone else "tensor_parallel"
    if is_alone and config.tensor_parallel > 1:
        problems.append(
            "strategy tp divides among all ranks: leave tensor_parallel out, or take full_shard with it"
        )
    if config.optimizer is OptimizerName.ADAMW_8BIT:
        problems.append(f"optimizer adamw_8bit does not go with {option}: its scales are of uncut rows")
    if config.precision.is_float8:
        problems.append(f"precision {config.precision} does not go with {option}: it was never run so")
    if config.lora_rank:
        problems.append(f"lora_rank does not go with {option}: divide adapters with full_shard")
    return problems


def _evaluation_problems(config: TrainConfig) -> list[str]:
    problems = []
    if config.eval_data and not config.eval_every:
        problems.append("eval_data needs eval_every: the steps between evaluations")
    if config.eval_every and not config.eval_data and config.data != SYNTHETIC:
        problems.append(
            "eval_every needs eval_data, e.g. the folder validation that prepare --validation-share writes"
        )
    if config.eval_every and not config.eval_batches and (config.eval_data or config.data) == SYNTHETIC:
        problems.append("eval_batches 0 needs eval_data of shards: synthetic data has no end")
    if config.document_mask and config.data == SYNTHETIC:
        problems.append("document_mask needs data of shards: synthetic data has no documents")
    return problems


def _text_problems(config: TrainConfig) -> list[str]:
    """Refuse options that only images have."""
    usual = {
        "objective": Objective.CLASSIFY,
        "image_size": 0,
        "classes": 0,
        "label_smoothing": 0.0,
        "new_head": False,
    }
    given = [name for name, value in usual.items() if getattr(config, name) != value]
    return [f"{name} needs a model of images, e.g. preset vit-tiny" for name in given]


def _image_problems(config: TrainConfig) -> list[str]:
    """Refuse options that only texts have, and sizes of images that do not divide evenly."""
    shape, problems = config.image_shape, []
    usual = {
        "sequence_length": 0,
        "document_mask": False,
        "loss_chunk": 0,
        "z_loss": 0.0,
        "lora_rank": 0,
    }
    for name, value in usual.items():
        if getattr(config, name) != value:
            problems.append(f"{name} is for texts; preset {config.model_name} is of images")
    if shape.image_size % shape.patch:
        problems.append(
            f"image_size {shape.image_size} does not divide by the model's patch of {shape.patch}"
        )
    if config.new_head and not config.init_from:
        problems.append("new_head needs init_from: the weights whose head is left out")
    if config.export and (strange := not_expressible(shape)):
        problems.append(
            f"export cannot write {config.model_name} as transformers' ViT, which has no "
            f"{' and no '.join(strange)}: set export false and keep the checkpoint"
        )
    return problems + _objective_problems(config)


def _objective_problems(config: TrainConfig) -> list[str]:
    problems = []
    is_masked = config.objective is Objective.MASKED
    if is_masked and not 0 < config.mask_share < 1:
        problems.append(f"mask_share must be between 0 and 1, not {config.mask_share}")
    if is_masked and config.label_smoothing:
        problems.append("label_smoothing needs objective classify")
    if config.label_smoothing >= 1:
        problems.append(f"label_smoothing must be below 1, not {config.label_smoothing}")
    return problems


def _adapter_problems(config: TrainConfig) -> list[str]:
    problems = []
    if config.lora_rank and not config.init_from:
        problems.append("lora_rank needs init_from: adapters are trained beside weights that are there")
    unknown = set(config.lora_targets.split(",")) - {"all", *PROJECTIONS}
    if unknown:
        names = ", ".join(shown(name) for name in sorted(unknown))
        problems.append(f"lora_targets must be all or some of {', '.join(PROJECTIONS)}, not {names}")
    return problems


def refuse_unsupported_torch(config: TrainConfig) -> None:
    """Refuse options that the installed torch does not support.

    Raises:
        UnsupportedTorchError: There are such options, or torch is missing or too old.
    """
    try:
        installed = version("torch")
    except PackageNotFoundError:
        installed = ""
    if problems := unsupported(config, installed):
        raise UnsupportedTorchError(problems)


def unsupported(config: TrainConfig, installed: str) -> list[str]:
    """Return the options that a version of torch does not support, each as a message.

    Args:
        config: Options of the job.
        installed: Version of the installed package, e.g. `2.13.0+cpu`; empty if there is none.
    """
    floor = _version_text(TORCH_FLOOR)
    numbers = re.match(r"(\d+)\.(\d+)", installed)
    if numbers is None:
        return [f"torch is not installed, and the program needs {floor} or newer"]
    here = (int(numbers[1]), int(numbers[2]))
    if here < TORCH_FLOOR:
        return [f"torch {installed} is installed, and the program needs {floor} or newer"]
    return [
        f"{limit.option} {str(limit.value).lower()} needs torch {_version_text(limit.until)} or newer, "
        f"and {installed} is installed; or set {limit.remedy}"
        for limit in _LIMITS
        if getattr(config, limit.option) == limit.value and limit.since <= here < limit.until
    ]


def _version_text(number: Version) -> str:
    return ".".join(map(str, number))
