"""Which versions of PyTorch the program runs with, and which options need another one.

No torch here: an old one is refused before it is loaded, and before the ranks meet.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from training.config import TrainConfig
from training.errors import UnsupportedTorchError
from training.options.choices import Strategy

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
