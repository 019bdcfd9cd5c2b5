"""How far the reading of a history is."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with how much is done, and of how much; None: that is not known before the end."""


def silent(_done: int, _total: int | None) -> None:
    """Tells nobody."""
