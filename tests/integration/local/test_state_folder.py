"""One twin lives on a state folder, and what a killed one left is gone before another one listens."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from local.config import TwinConfig
from local.deployment.deployment_errors import StateInUseError
from local.foundation import lay, own_folder
from local.journal import ProcessEntry
from local.sdk_defaults import write_defaults
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


def test_T2_what_a_twin_keeps_is_its_owners_alone(tmp_path: Path) -> None:
    state, journal = tmp_path / "state", tmp_path / "journal"
    before = os.umask(0)
    try:
        (state / "logs").mkdir(parents=True)  # of an earlier twin, open to all
        with ExitStack() as resources:
            lay(TwinConfig(state=state, journal=journal), resources)
            lay(TwinConfig(state=tmp_path / "new"), resources)
            folders = own_folder(state, "logs"), own_folder(state, "training"), tmp_path / "new"
        defaults = write_defaults(state, bucket="bucket", role_arn="role")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o700] * 3
    assert [path.stat().st_mode & 0o777 for path in (journal, defaults)] == [0o600] * 2


def test_the_journal_goes_on_and_keeps_the_mode_that_its_owner_gave_it(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("a line of before\n")
    journal.chmod(0o640)
    with ExitStack() as resources:
        lay(TwinConfig(state=tmp_path / "state", journal=journal), resources).journal.process(
            ProcessEntry(training_job="job", host="algo-1", event="start", pid=1)
        )
    assert journal.read_text().startswith('a line of before\n{"seq": 1')
    assert journal.stat().st_mode & 0o777 == 0o640
