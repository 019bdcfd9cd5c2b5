"""Read typed options from texts: all mistakes at once, and an unknown name with its nearest.

An option is a field of a dataclass made by ``option``; its type says how its text is read.

Options of FSDP1 scripts are accepted and translated, each with a line in the log. Their names are those of
FSDP1's constructor and of Accelerate, which puts `fsdp_` before them. FSDP2 has most of them built in.
Sources: PyTorch documentation, FullyShardedDataParallel and fully_shard; Accelerate documentation, FSDP1 vs
FSDP2.
"""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from training.errors import ConfigError

_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SDK_PREFIX = "sagemaker_"
"""Prefix of hyperparameters that the SDK adds for the toolkit that starts scripts."""
_SHOWN = 60
"""Most characters of a value in a message: one long value must not push the other mistakes out of it."""


def option(default: Any, text: str, *, at_least: float | None = None, env: str = "") -> Any:  # noqa: ANN401
    """Make a field with its help, its lower bound and the variable that may replace its default."""
    return field(default=default, metadata={"text": text, "at_least": at_least, "env": env})


def paired(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Pair `--key value` and `--key=value`, dashes as underscores; also return what could not be paired."""
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
    own = {name: text for name, text in texts.items() if not name.startswith(_SDK_PREFIX)}
    return own, problems


def read(cls: type, texts: Mapping[str, str], env: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return values for the fields of ``cls``, and all that is wrong with the texts.

    Args:
        cls: Dataclass whose fields are made by ``option``.
        texts: Texts by option; they go before the environment.
        env: Environment, which replaces the defaults of some options.
    """
    options = {attribute.name: attribute for attribute in fields(cls) if "text" in attribute.metadata}
    values: dict[str, Any] = {}
    problems: list[str] = []
    variables = {name: attribute.metadata["env"] for name, attribute in options.items()}
    given = {name: env[variable] for name, variable in variables.items() if env.get(variable)}
    for name, text in {**given, **texts}.items():
        try:
            values[name] = _value(options, name, text)
        except ConfigError as error:
            problems.extend(error.problems)
    return values, problems


def described(cls: type) -> str:
    """Return the text that `--help` prints: an option a line."""
    lines = (_line(attribute) for attribute in fields(cls) if "text" in attribute.metadata)
    return "\n".join(lines)


def shown(text: str) -> str:
    """Quote a text for a message, cut to a bounded length."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _line(attribute: Field[Any]) -> str:
    assert attribute.default is not MISSING
    return f"--{attribute.name} ({_shown(attribute.default)}): {attribute.metadata['text']}"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(options: Mapping[str, Field[Any]], name: str, text: str) -> object:
    if name not in options:
        near = difflib.get_close_matches(name, options, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "train.py --help lists them"
        raise ConfigError([f"unknown option {shown(name)} ({hint})"])
    attribute = options[name]
    kind, convert = _reader(attribute.type)
    try:
        value = convert(text)
    except (ValueError, KeyError) as error:
        why = _REFUSED_WORDS.get((name, text.lower().rpartition(".")[2]), "")
        raise ConfigError([f"{name} must be {kind}, not {shown(text)}{why}"]) from error
    _check_bound(attribute, value)
    return value


_NO_FP16 = (
    ": fp16 loses small gradients unless they are scaled, and bf16 does not; "
    "docs/training/precision.md#why-not-fp16"
)
_REFUSED_WORDS = {
    (option, word): _NO_FP16
    for option in ("precision", "reduce_dtype")
    for word in ("fp16", "float16", "half")
}
"""Words that other programs accept, and why they are refused here."""


def _check_bound(attribute: Field[Any], value: object) -> None:
    least = attribute.metadata["at_least"]
    if least is None or not isinstance(value, (int, float)):
        return
    if not least <= value < math.inf:  # nan is neither
        raise ConfigError([f"{attribute.name} must be a finite number, {least} or more, not {value}"])


def _reader(kind: object) -> tuple[str, Callable[[str], object]]:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "one of " + ", ".join(kind), kind
    return _READERS[kind]


_READERS: Mapping[object, tuple[str, Callable[[str], object]]] = {
    str: ("text", str),
    int: ("a whole number", int),
    float: ("a number", float),
    bool: ("true or false", lambda text: _TRUTHS[text.lower()]),
    Path: ("a path", Path),
}


_STRATEGIES = {
    "full_shard": "full_shard",
    "shard_grad_op": "shard_grad_op",
    "hybrid_shard": "hybrid_shard",
    "_hybrid_shard_zero2": "hybrid_shard_zero2",
    "hybrid_shard_zero2": "hybrid_shard_zero2",
    "no_shard": "no_shard",
    # Accelerate also takes the numbers.
    "1": "full_shard",
    "2": "shard_grad_op",
    "3": "no_shard",
    "4": "hybrid_shard",
    "5": "hybrid_shard_zero2",
}
_PRECISION_WORDS = {"bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32", "no": "fp32"}
_YES_OR_NO = {"true": "true", "1": "true", "false": "false", "0": "false"}
_TURNED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "strategy": ("strategy", _STRATEGIES),
    "sharding_strategy": ("strategy", _STRATEGIES),
    "forward_prefetch": ("prefetch_blocks", {"true": "1", "1": "1", "false": "0", "0": "0"}),
    "offload_params": ("cpu_offload", _YES_OR_NO),
    "mixed_precision": ("precision", _PRECISION_WORDS),
    "param_dtype": ("precision", _PRECISION_WORDS),
    "reduce_dtype": ("reduce_dtype", _PRECISION_WORDS),
}
"""FSDP1's options, the option that each becomes, and its words. Other words are passed on as they are: the
option refuses them, and names those that there are."""
_UNITS = "each block is gathered by itself, and so are the embedding, and the last norm with the head"
_BUILT_IN = {
    "auto_wrap_policy": _UNITS,
    "transformer_layer_cls_to_wrap": _UNITS,
    "min_num_params": _UNITS,
    "limit_all_gathers": "FSDP2 limits the memory of gathered weights by itself",
    "use_orig_params": "FSDP2 always keeps the original parameters",
    "flatten_parameters": "FSDP2 shards each parameter by itself",
    "sync_module_states": "first weights follow from the seed, so all ranks have the same",
    "cpu_ram_efficient_loading": "each rank reads only its own part of the weights",
    "param_init_fn": "models are made on the meta device and initialised after sharding",
    "device_id": "a rank has the device of its local rank",
    "backward_prefetch": "FSDP2 always gathers the next block before it is needed; "
    "prefetch_blocks sets how many",
    "buffer_dtype": "the model has no buffers; rotary tables are fp32",
    "cast_forward_inputs": "inputs are tokens",
    "cast_root_forward_inputs": "inputs are tokens",
    "keep_low_precision_grads": "sharded gradients have the precision of the weights; "
    "with precision=bf16_pure that is bf16",
    "state_dict_type": "checkpoints are sharded and fit any number of ranks; "
    "export leaves the whole weights at the end",
}


def translated(texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the options in our words, and a line for each that was translated or needs no counterpart.

    Raises:
        ConfigError: Two options contradict each other.
    """
    ours: dict[str, str] = {}
    notes: list[str] = []
    for name, text in texts.items():
        plain = name.removeprefix("fsdp_")
        if plain in _BUILT_IN:
            notes.append(f"{name}={text}: {_BUILT_IN[plain]}")
            continue
        new_name, new_text = _turned(plain, text)
        if ours.setdefault(new_name, new_text) != new_text:
            raise ConfigError([f"{name}={text} contradicts {new_name}={ours[new_name]}"])
        if (new_name, new_text) != (name, text):
            notes.append(f"{name}={text}: {new_name}={new_text}")
    return ours, notes


def _turned(name: str, text: str) -> tuple[str, str]:
    if name not in _TURNED:
        return name, text
    new_name, words = _TURNED[name]
    # Scripts write torch.bfloat16 and ShardingStrategy.FULL_SHARD too.
    return new_name, words.get(text.lower().rpartition(".")[2], text)
