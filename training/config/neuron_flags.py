"""Flags of Neuron's compiler (NEURON_CC_FLAGS): what a job on Trainium gets, and what is wrong in its own.

Source: Neuron documentation, compiler CLI reference guide (neuronx-cc compile), July 2026. A flag that is not
in it passes: releases add flags. It was not run on hardware.
"""

import difflib
import shlex
from collections.abc import Mapping

from training.errors import ConfigError

VARIABLE = "NEURON_CC_FLAGS"
DEFAULT = "--model-type=transformer"
"""All models here are transformers; without it the compiler takes them for any model."""
_LEVELS = ("1", "2", "3")
_VALUES: Mapping[str, tuple[str, ...]] = {
    "--model-type": ("generic", "transformer", "unet-inference"),
    "--auto-cast": ("none", "matmult", "all"),
    "--auto-cast-type": ("bf16", "fp16", "tf32", "fp8_e4m3"),
    "--optlevel": _LEVELS,
    "-O": _LEVELS,
    "--distribution-strategy": ("llm-training",),
    "--logical-nc-config": ("1", "2"),
    "-lnc": ("1", "2"),
}
"""Flags whose values the reference lists."""


def compiler_flags(text: str) -> tuple[str, list[str]]:
    """Return the flags for the compiler, and a note for each that the reference does not have.

    A job that sets no model type gets that of a transformer; all that it does set stays as it is.

    Args:
        text: The job's own value of NEURON_CC_FLAGS; empty if it has none.

    Raises:
        ConfigError: The text is not one of a shell, or a known flag has a value that the compiler refuses.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(
            [f"{VARIABLE} cannot be read: {error}; write it as {DEFAULT} --optlevel=2"]
        ) from error
    given = _given(words)
    problems = [
        f"{VARIABLE}: {flag} must be one of {', '.join(_VALUES[flag])}, not {value!r}"
        for flag, value in given
        if flag in _VALUES and value not in _VALUES[flag]
    ]
    if problems:
        raise ConfigError(problems)
    names = [flag for flag, _ in given]
    flags = text if "--model-type" in names else f"{DEFAULT} {text}".strip()
    return flags, [note for flag in names if (note := _note(flag))]


def _given(words: list[str]) -> list[tuple[str, str]]:
    """Pair flags with values: ``--flag=value``, ``--flag value`` and ``-O1``; a switch has an empty one."""
    pairs: list[tuple[str, str]] = []
    for word in words:
        if not word.startswith("-"):
            if pairs and not pairs[-1][1]:
                pairs[-1] = (pairs[-1][0], word)
        elif word.startswith("-O") and len(word) > len("-O"):
            pairs.append(("-O", word.removeprefix("-O").removeprefix("=")))
        else:
            flag, _, value = word.partition("=")
            pairs.append((flag, value))
    return pairs


def _note(flag: str) -> str:
    """Say that a flag looks like a misspelt one; empty if it does not."""
    if flag in _VALUES or not (near := difflib.get_close_matches(flag, _VALUES, n=1, cutoff=0.8)):
        return ""
    return f"{VARIABLE}: {flag} is passed on as it is; did you mean {near[0]}?"
