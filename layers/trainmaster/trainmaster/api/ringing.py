"""Waking the scheduler after a write."""

from collections.abc import Iterable
from contextlib import suppress

from trainmaster.core.errors import UnavailableError
from trainmaster.ports import Doorbell


def ring(doorbell: Doorbell, pools: Iterable[str]) -> None:
    """Ring if it can be done: what was written stands, and the reconciler rings within a minute anyway."""
    with suppress(UnavailableError):
        doorbell.ring(pools)
