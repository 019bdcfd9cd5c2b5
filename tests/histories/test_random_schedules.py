"""Seeded random schedules: whatever is interleaved, lost, doubled, refused or killed, the invariants hold."""

import os

import pytest

from tests.histories.playing import play

FEW = int(os.environ.get("TRAINMASTER_HISTORIES", "400"))
BLOCK = 100
"""Histories of one test, so that workers share them."""
FIRST_OF_LONG = 100_000


@pytest.mark.parametrize("first", range(0, FEW, BLOCK))
def test_random_schedules_keep_the_invariants(first: int) -> None:
    for seed in range(first, first + BLOCK):
        play(seed)
