"""Worlds as those of the fault tests."""

from tests.faults.conftest import cloud, new_world

__all__ = ["cloud", "new_world"]
