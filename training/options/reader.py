"""Reads typed options from texts: all mistakes at once, an unknown name with its nearest.

An option is a field of a dataclass made by ``option``; its type says how its text is read.
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
