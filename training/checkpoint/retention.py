"""Which checkpoints are kept."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    newest: int = 2
    """So many of the newest; two, so that a newest one that is lost on its way leaves one to go back to."""
    every: int = 0
    """And those whose step divides by it; 0: no others."""

    def __post_init__(self) -> None:
        if self.newest < 1 or self.every < 0:
            raise ValueError(f"keep at least one checkpoint, and every 0 or more: {self}")


def kept(steps: Collection[int], keep: Retention) -> set[int]:
    """Of these whole checkpoints."""
    newest = sorted(steps, reverse=True)[: keep.newest]
    return {*newest, *(step for step in steps if keep.every and step % keep.every == 0)}
