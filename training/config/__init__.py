"""Options of a job: their words, the model shapes that they name, and the combinations that are refused.

``read_config`` reads a job's options and reports all mistakes at once. Nothing here imports torch, so that a
job may be refused before it is loaded.
"""

from collections.abc import Mapping, Sequence

from training.config.choices import ActivationCheckpointing
from training.config.config_json import read_shape
from training.config.contradictions import contradictions
from training.config.encoder_decoders import refusal
from training.config.environment import directory_of
from training.config.reader import paired, read, shown, translated
from training.config.sections import PRESET_SHAPES
from training.config.train_config import TrainConfig
from training.config.vision_shape import Shape
from training.errors import ConfigError

__all__ = ["TrainConfig", "read_config"]


def read_config(arguments: Sequence[str], env: Mapping[str, str]) -> TrainConfig:
    """Read `--key value` and `--key=value`; dashes and underscores are the same.

    Raises:
        ConfigError: Options are wrong; it names every mistake.
    """
    texts, problems = paired(arguments)
    ours, translations = translated(texts)
    values, unread = read(TrainConfig, _in_current_words(ours), env)
    problems += unread
    preset = values.get("preset", "tiny")
    if preset not in PRESET_SHAPES:
        why = f", which {refusal(preset)}" if refusal(preset) else ""
        problems.append(f"preset must be one of {', '.join(PRESET_SHAPES)}, not {shown(preset)}{why}")
    shape = None
    if values.get("model_config"):
        problems += ["model_config and preset are two models: give one"] if "preset" in values else []
        shape = _read_shape(values["model_config"], env, problems)
    if problems:
        raise ConfigError(problems)
    config = TrainConfig(**values, translations=tuple(translations), described=shape)
    if clashes := contradictions(config):
        raise ConfigError(clashes)
    return config


def _read_shape(source: str, env: Mapping[str, str], problems: list[str]) -> Shape | None:
    """Read the shape that ``model_config`` names; add its mistakes to ``problems`` and return None.

    This comes before any weights are fetched.
    """
    try:
        return read_shape(directory_of(source, env, option="model_config"), option="model_config")
    except ConfigError as error:
        problems += error.problems
        return None


def _in_current_words(texts: Mapping[str, str]) -> dict[str, str]:
    """Accept true and false for ``activation_checkpointing``, which was a yes or no in earlier versions."""
    words = {"true": ActivationCheckpointing.FULL.value, "false": ActivationCheckpointing.NONE.value}
    name = "activation_checkpointing"
    return {**texts, name: words.get(texts[name].lower(), texts[name])} if name in texts else dict(texts)
