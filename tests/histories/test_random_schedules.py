"""Seeded random schedules: whatever is interleaved, lost, doubled, refused or killed, the invariants hold."""

import os

import pytest

from tests.histories.playing import play

BLOCK = 100
"""Histories of one test, so that workers share them."""
FEW = int(os.environ.get("TRAINMASTER_HISTORIES", "100"))
"""What ``make test`` plays; ``.ci/run`` asks for 1,000, and plays a third of ``MANY`` others."""
MANY = 3_000
"""What ``make test-long`` plays, others; ``python -m tests.histories --count 10000`` plays more."""
FIRST_OF_MANY = 1_000_000


@pytest.mark.parametrize("first", range(0, FEW, BLOCK))
def test_random_schedules_keep_the_invariants(first: int) -> None:
    for seed in range(first, first + BLOCK):
        play(seed)


HARSH_FEW = 40


def test_random_schedules_keep_the_invariants_in_the_harsh_world() -> None:
    for seed in range(HARSH_FEW):
        play(seed, world="harsh")


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(FIRST_OF_MANY, FIRST_OF_MANY + 500, BLOCK))
def test_many_random_schedules_keep_the_invariants_in_the_harsh_world(first: int) -> None:
    for seed in range(first, first + BLOCK):
        play(seed, world="harsh")


@pytest.mark.long
@pytest.mark.parametrize("first", range(FIRST_OF_MANY, FIRST_OF_MANY + MANY, BLOCK))
def test_many_random_schedules_keep_the_invariants(first: int) -> None:
    for seed in range(first, first + BLOCK):
        play(seed)
