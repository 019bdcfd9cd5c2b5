from collections.abc import Iterator

import pytest

from training.world import World, joined_world


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    """This process as the one rank."""
    with joined_world({}) as joined:
        yield joined
