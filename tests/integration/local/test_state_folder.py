"""One twin lives on a state folder, and what a killed one left is gone before another one listens."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from local.config import TwinConfig
from local.deployment.errors import StateInUseError
from local.foundation import lay
from local.up import forget


def test_a_second_twin_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    config = TwinConfig(state=tmp_path / "state", ready=ready)
    with ExitStack() as first:
        lay(config, first)
        ready.write_text("the first one's")
        with ExitStack() as second, pytest.raises(StateInUseError, match=f"process id {os.getpid()}; end"):
            lay(config, second)
        assert ready.read_text() == "the first one's"
    with ExitStack() as third:
        lay(config, third)


def test_what_a_killed_twin_left_is_taken_over(tmp_path: Path) -> None:
    """Its number may be another process's by now: what counts is who holds the lock."""
    state, ready = tmp_path / "state", tmp_path / "ready"
    state.mkdir()
    (state / "lock").write_text("1")
    ready.write_text("{}")
    with ExitStack() as resources:
        lay(TwinConfig(state=state, ready=ready), resources)
        assert not ready.exists()
        assert (state / "lock").read_text() == str(os.getpid())


@pytest.mark.parametrize(
    ("written", "stays"),
    [({"pid": 7}, False), ({"pid": 8}, True), ("half of a fi", True), ([], True), (None, False)],
)
def test_a_twin_removes_its_own_ready_file_alone(tmp_path: Path, written: object, *, stays: bool) -> None:
    ready = tmp_path / "ready"
    if written is not None:
        ready.write_text(written if isinstance(written, str) else json.dumps(written))
    forget(ready, 7)
    forget(None, 7)
    assert ready.exists() is stays
