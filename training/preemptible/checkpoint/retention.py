"""Which checkpoints are kept; ``saver`` deletes the others."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which checkpoints are kept."""

    newest: int = 2
    """How many of the newest are kept; two, so that one is left if the newest is lost on its way."""
    every: int = 0
    """Checkpoints whose step divides by this are kept, too; 0 for no others."""

    def __post_init__(self) -> None:
        if self.newest < 1 or self.every < 0:
            raise ValueError(f"keep at least one checkpoint, and every 0 or more: {self}")


def kept(steps: Collection[int], keep: Retention) -> set[int]:
    """Choose which of these whole checkpoints are kept, by step."""
    newest = sorted(steps, reverse=True)[: keep.newest]
    return {*newest, *(step for step in steps if keep.every and step % keep.every == 0)}
