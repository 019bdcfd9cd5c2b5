"""Seeded random histories under the real handlers: whatever happens, the invariants hold."""

import pytest

from tests.faults.conftest import NewWorld
from tests.faults.history import POLICY, History

pytestmark = pytest.mark.thorough


def _play(new_world: NewWorld, seed: int) -> None:
    print(f"seed {seed}")  # noqa: T201  shown where a test fails, to play it again
    history = History(new_world(POLICY), seed)
    history.play()
    left = [f"{job.name} is {job.state}" for job in history.comes_to_an_end() if not job.is_final]
    assert left == []


@pytest.mark.parametrize("seed", range(3))
def test_a_random_history_keeps_the_invariants(seed: int, new_world: NewWorld) -> None:
    _play(new_world, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_histories_keep_the_invariants(seed: int, new_world: NewWorld) -> None:
    _play(new_world, seed)
