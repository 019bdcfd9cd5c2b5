"""The finding of a check: a level, a sentence, and the commands that change it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Level(StrEnum):
    """The words that stand at the beginning of a line, as ``trainmaster doctor`` has them."""

    OK = "ok"
    WARN = "warn"
    """A deployment works; something else may not, or costs money."""
    FAIL = "FAIL"
    """The deployment fails, or what was deployed cannot be reached."""
    SKIP = "skip"
    """The fact cannot be known with these rights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    id: str
    level: Level
    text: str
    commands: tuple[str, ...] = ()
    """Shell commands to paste, in this order."""
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters of the stack that the account decides, for ``make deploy``."""
