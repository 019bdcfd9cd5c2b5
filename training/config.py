"""What can be chosen: typed options from the strings that SageMaker passes as hyperparameters."""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from training.errors import ConfigError
from training.presets import PRESETS, ModelShape


class Precision(StrEnum):
    FP32 = "fp32"
    BF16 = "bf16"


def _about(text: str, *, at_least: float | None = None, env: str = "") -> dict[str, Any]:
    """Metadata of an option: its help, its lower bound, the variable that may replace its default."""
    return {"text": text, "at_least": at_least, "env": env}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    preset: str = field(default="tiny", metadata=_about(f"model shape: {', '.join(PRESETS)}"))
    steps: int = field(default=60, metadata=_about("steps of the whole job, over all attempts", at_least=1))
    seed: int = field(default=0, metadata=_about("weights and data follow from it", at_least=0))
    batch_size: int = field(default=8, metadata=_about("sequences per step, over all ranks", at_least=1))
    lr: float = field(default=3e-3, metadata=_about("peak learning rate", at_least=0))
    warmup_steps: int = field(default=10, metadata=_about("steps up to the peak", at_least=0))
    weight_decay: float = field(default=0.1, metadata=_about("of matrices; norms have none", at_least=0))
    grad_clip: float = field(default=1.0, metadata=_about("largest norm of all gradients", at_least=1e-3))
    precision: Precision = field(default=Precision.BF16, metadata=_about("bf16 or fp32 compute"))
    checkpoint_every: int = field(default=10, metadata=_about("steps between checkpoints", at_least=1))
    log_every: int = field(default=1, metadata=_about("steps between loss lines", at_least=1))
    min_step_seconds: float = field(
        default=0.0, metadata=_about("pace a demonstration: no step is shorter", at_least=0)
    )
    checkpoint_dir: Path = field(
        default=Path("/opt/ml/checkpoints"),
        metadata=_about("where checkpoints are kept", env="SM_CHECKPOINT_DIR"),
    )
    model_dir: Path = field(
        default=Path("/opt/ml/model"), metadata=_about("where the result goes", env="SM_MODEL_DIR")
    )

    @property
    def shape(self) -> ModelShape:
        return PRESETS[self.preset]

    @classmethod
    def from_arguments(cls, arguments: Sequence[str], env: Mapping[str, str]) -> Self:
        """Read `--key value` and `--key=value`; dashes and underscores are the same.

        Raises:
            ConfigError: With everything that is wrong.
        """
        texts, problems = _pair(arguments)
        options = {option.name: option for option in fields(cls)}
        values: dict[str, Any] = {
            name: Path(env[option.metadata["env"]])
            for name, option in options.items()
            if env.get(option.metadata["env"])
        }
        for name, text in texts.items():
            if name.startswith("sagemaker_"):  # the SDK's own, for the toolkit that starts us
                continue
            try:
                values[name] = _read(options, name, text)
            except ConfigError as error:
                problems.extend(error.problems)
        if problems:
            raise ConfigError(problems)
        return cls(**values)


def _pair(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their texts, and what could not be paired."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            problems.append(f"{word!r} belongs to no option")
            continue
        key, equals, text = word.partition("=")
        name = key.lstrip("-").replace("-", "_")
        if not equals and (not rest or rest[0].startswith("--")):
            problems.append(f"{name} has no value")
            continue
        texts[name] = text if equals else rest.pop(0)
    return texts, problems


def _read(options: Mapping[str, Field[Any]], name: str, text: str) -> object:
    if name not in options:
        near = difflib.get_close_matches(name, options, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(options)}"
        raise ConfigError([f"unknown option {name!r} ({hint})"])
    option = options[name]
    kind, read = _KINDS[option.type]
    try:
        value = read(text)
    except ValueError as error:
        raise ConfigError([f"{name} must be {kind}, not {text!r}"]) from error
    _check(option, value)
    return value


def _check(option: Field[Any], value: object) -> None:
    least = option.metadata["at_least"]
    if isinstance(value, (int, float)) and not least <= value < math.inf:  # nan is neither
        raise ConfigError([f"{option.name} must be a finite number, {least} or more, not {value}"])
    if option.name == "preset" and value not in PRESETS:
        raise ConfigError([f"preset must be one of {', '.join(PRESETS)}, not {value!r}"])


_KINDS: Mapping[object, tuple[str, Callable[[str], object]]] = {
    str: ("text", str),
    int: ("a whole number", int),
    float: ("a number", float),
    Path: ("a path", Path),
    Precision: (" or ".join(Precision), Precision),
}


def describe_options() -> str:
    """What `--help` prints: an option a line."""
    return "\n".join(
        f"--{option.name} ({option.default}): {option.metadata['text']}" for option in fields(TrainConfig)
    )
