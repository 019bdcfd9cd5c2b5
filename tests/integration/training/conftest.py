from collections.abc import Iterator

import pytest

from training.ranks.world import World, joined_world


@pytest.fixture(scope="module")  # no longer: other modules join worlds of their own
def world() -> Iterator[World]:
    """This process as the one rank."""
    with joined_world({}) as joined:
        yield joined
