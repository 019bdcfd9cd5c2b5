"""The launcher that waits for a visitor of its container, before training begins or once it has failed."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.training.launches import Host, ended, lines_until
from training import launch

OPEN = "launcher: open to visitors"
VARIABLE = "TRAINMASTER_HOLD_OPEN"


@contextmanager
def a_session(folder: Path) -> Iterator[None]:
    """A process of the name that those of sessions have."""
    program = shutil.copy(shutil.which("sleep") or "", folder / "ssm-session-worker")
    session = subprocess.Popen([program, "600"])
    try:
        yield
    finally:
        session.kill()
        session.wait()


def waiting(host: Host) -> "subprocess.Popen[str]":
    process = host.start()
    assert lines_until(process, OPEN)[-1].startswith(OPEN)
    return process


def test_training_begins_once_the_file_is_there(tmp_path: Path) -> None:
    process = waiting(Host.with_script(tmp_path, "print('trains')", **{VARIABLE: "900"}))
    (tmp_path / "go").touch()
    done = ended(process)
    assert done.code == 0, done.errors
    assert done.lines[0].endswith(f"{tmp_path / 'go'} is there")
    assert done.lines[-2:] == ["trains", "launcher: completed "]


def test_a_visitor_holds_it_open_and_it_goes_on_when_the_last_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    visits = iter([False, True, True, False])
    monkeypatch.setattr(launch, "is_visited", lambda: next(visits))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    launch.hold_open({"SAGEMAKER_BASE_DIR": str(tmp_path)}, launch.Stop(), 900.0, then="training begins")
    assert capsys.readouterr().out.splitlines()[-1].endswith("the last visitor has left")
    assert next(visits, None) is None, "it looked until then"


def test_a_session_is_told_by_its_process(tmp_path: Path) -> None:
    with a_session(tmp_path):
        assert launch.is_visited()


@pytest.mark.parametrize(
    ("line", "is_visited"),
    [
        pytest.param(b"/usr/bin/ssm-session-worker\0ada-0a1b\0i-1", True, id="a session"),
        pytest.param(b"grep\0ssm-session-worker\0", False, id="somebody who looks for one"),
        pytest.param(b"/usr/bin/amazon-ssm-agent\0", False, id="the agent alone"),
        pytest.param(b"", False, id="a process of the kernel"),
    ],
)
def test_only_the_program_of_a_session_counts(tmp_path: Path, line: bytes, *, is_visited: bool) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "12/cmdline").write_bytes(line)
    (tmp_path / "13").mkdir()  # it has ended between the two looks
    assert launch.is_visited(tmp_path) is is_visited


def test_a_stop_ends_the_wait_and_nothing_was_trained(tmp_path: Path) -> None:
    process = waiting(Host.with_script(tmp_path, "print('trains')", **{VARIABLE: "900"}))
    process.terminate()
    done = ended(process)
    assert (done.code, "trains" in done.lines) == (143, False)


def test_a_failure_is_written_before_the_wait_and_its_code_is_kept(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "raise ValueError('no')", **{VARIABLE: "failure:900"})
    process = waiting(host)
    assert "ValueError: no" in host.failure
    assert host.status["state"] == "failed"
    (tmp_path / "go").touch()
    assert ended(process).code == 1


@pytest.mark.parametrize(
    ("value", "script", "code"),
    [
        pytest.param("failure:900", "", 0, id="nothing failed"),
        pytest.param("900s", "", 0, id="no number"),
        pytest.param("-1", "", 0, id="less than nothing"),
        pytest.param("", "", 0, id="empty"),
    ],
)
def test_otherwise_nobody_is_waited_for(tmp_path: Path, value: str, script: str, code: int) -> None:
    done = Host.with_script(tmp_path, script, **{VARIABLE: value}).run()
    assert done.code == code, done.errors
    assert not [line for line in done.lines if line.startswith(OPEN)]


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    done = Host.with_script(tmp_path, "print('trains')", **{VARIABLE: "1"}).run()
    assert done.code == 0, done.errors
    assert any(line.endswith("its time is over") for line in done.lines)
