"""Reads typed options from texts: all mistakes at once, an unknown name with its nearest.

An option is a field of a dataclass made by ``option``; its type says how its text is read.

The options of FSDP1 scripts are taken, turned into ours, and said; nothing is dropped without a word. Their
names are those of FSDP1's constructor and of Accelerate, which puts `fsdp_` before them. FSDP2 has most of
them built in. Sources: PyTorch documentation, FullyShardedDataParallel and fully_shard; Accelerate
documentation, FSDP1 vs FSDP2.
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
"""Hyperparameters that begin so are the SDK's own, for the toolkit that starts scripts."""
_SHOWN = 60
"""Characters of a value in a message: one long value must not push the other mistakes out of it."""


def option(default: Any, text: str, *, at_least: float | None = None, env: str = "") -> Any:  # noqa: ANN401
    """A field with its help, its lower bound and the variable that may replace its default."""
    return field(default=default, metadata={"text": text, "at_least": at_least, "env": env})


def paired(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """`--key value` and `--key=value`, dashes as underscores; and what could not be paired."""
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
    """Values for the fields of ``cls``, and all that is wrong with the texts."""
    options = {one.name: one for one in fields(cls) if "text" in one.metadata}
    values: dict[str, Any] = {}
    problems: list[str] = []
    given = {name: env[one.metadata["env"]] for name, one in options.items() if env.get(one.metadata["env"])}
    for name, text in {**given, **texts}.items():
        try:
            values[name] = _value(options, name, text)
        except ConfigError as error:
            problems.extend(error.problems)
    return values, problems


def described(cls: type) -> str:
    """What `--help` prints: an option a line."""
    lines = (_line(one) for one in fields(cls) if "text" in one.metadata)
    return "\n".join(lines)


def shown(text: str) -> str:
    """Quoted, for a message."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _line(one: Field[Any]) -> str:
    assert one.default is not MISSING
    return f"--{one.name} ({_shown(one.default)}): {one.metadata['text']}"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(options: Mapping[str, Field[Any]], name: str, text: str) -> object:
    if name not in options:
        near = difflib.get_close_matches(name, options, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "train.py --help lists them"
        raise ConfigError([f"unknown option {shown(name)} ({hint})"])
    one = options[name]
    kind, convert = _reader(one.type)
    try:
        value = convert(text)
    except (ValueError, KeyError) as error:
        raise ConfigError([f"{name} must be {kind}, not {shown(text)}"]) from error
    _check_bound(one, value)
    return value


def _check_bound(one: Field[Any], value: object) -> None:
    least = one.metadata["at_least"]
    if least is None or not isinstance(value, (int, float)):
        return
    if not least <= value < math.inf:  # nan is neither
        raise ConfigError([f"{one.name} must be a finite number, {least} or more, not {value}"])


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
"""What an option is called here, and its words; others are handed on, and refused with those there are."""
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
    """The options in our words, and a line for each that was turned or needs none.

    Raises:
        ConfigError: Two options say different things about one.
    """
    ours: dict[str, str] = {}
    said: list[str] = []
    for name, text in texts.items():
        plain = name.removeprefix("fsdp_")
        if plain in _BUILT_IN:
            said.append(f"{name}={text}: {_BUILT_IN[plain]}")
            continue
        new_name, new_text = _turned(plain, text)
        if ours.setdefault(new_name, new_text) != new_text:
            raise ConfigError([f"{name}={text} contradicts {new_name}={ours[new_name]}"])
        if (new_name, new_text) != (name, text):
            said.append(f"{name}={text}: {new_name}={new_text}")
    return ours, said


def _turned(name: str, text: str) -> tuple[str, str]:
    if name not in _TURNED:
        return name, text
    new_name, words = _TURNED[name]
    # Scripts write torch.bfloat16 and ShardingStrategy.FULL_SHARD too.
    return new_name, words.get(text.lower().rpartition(".")[2], text)
