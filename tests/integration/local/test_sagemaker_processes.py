"""Children of the twin and all they start end together."""

import os
import sys
import threading
import uuid
from pathlib import Path

import pytest

from local.processes import Child, Command
from tests.integration.local.sagemaker_world import wait_for

MARK = "CHILD_MARK"


class Run:
    """A child with its output and exit code."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.output = b""
        self.exit_codes: list[int] = []
        self.ended = threading.Event()
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", MARK: str(uuid.uuid4())}
        command = Command(argv=argv, env=env, cwd=folder, mark=MARK)
        self.child = Child(command, on_output=self._take, on_exit=self._end)
        self.child.watch()

    def _take(self, output: bytes) -> None:
        self.output += output

    def _end(self, code: int) -> None:
        self.exit_codes.append(code)
        self.ended.set()

    def lines(self) -> list[str]:
        return self.output.decode().splitlines()


@pytest.fixture
def run(tmp_path):
    runs: list[Run] = []

    def start(*argv: str) -> Run:
        runs.append(Run(tmp_path, list(argv)))
        return runs[-1]

    yield start
    for one in runs:
        one.child.kill()
        one.child.join()


def is_alive(pid: int) -> bool:
    """A zombie is not alive."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def test_output_and_exit_code_come_back(run):
    ended = run("sh", "-c", "echo out; echo err >&2; exit 3")
    ended.child.join()

    assert sorted(ended.lines()) == ["err", "out"]
    assert ended.exit_codes == [3]


def test_a_child_that_a_signal_ended_has_128_and_its_number(run):
    ended = run("sleep", "60")
    ended.child.kill()
    ended.child.join()

    assert ended.exit_codes == [137]


def test_sigterm_reaches_the_child_alone(run):
    script = "trap 'echo parent' TERM; sleep 60 & echo $!; wait $!; kill -0 $! && echo child lives"
    child = run("sh", "-c", script)
    wait_for(lambda: child.output != b"", "the first line")

    assert child.child.terminate()
    child.child.join()

    assert child.lines()[1:] == ["parent", "child lives"]


def test_a_child_that_has_ended_gets_no_signal(run):
    ended = run("true")
    ended.child.join()

    assert not ended.child.terminate()


@pytest.mark.parametrize("ending", ["exit 0", "sleep 60"])
def test_what_a_child_started_ends_with_it_even_in_a_session_of_its_own(run, ending):
    parent = run(
        "sh", "-c", f"sleep 60 & echo $!; setsid sh -c 'echo $$; exec sleep 60' & sleep 0.2; {ending}"
    )
    wait_for(lambda: len(parent.lines()) == 2, "two pids")
    if ending != "exit 0":
        parent.child.kill()
    parent.child.join()

    assert [is_alive(int(pid)) for pid in parent.lines()] == [False, False]


def test_a_child_of_another_is_left_alone(run):
    other = run("sleep", "60")
    ended = run("true")
    ended.child.join()

    assert other.child.is_running


def test_a_child_has_its_own_session_and_no_input(run):
    child = run("python", "-c", "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))")
    child.child.join()

    assert child.lines() == ["True ''"]
    assert os.getsid(0) != child.child.pid


def test_nothing_to_run_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Run(tmp_path, ["/no/such/command"])
