"""A demo whose twin is killed in the middle, or that is interrupted, says so and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.process_tree import children_of, still_alive, tree_of

LONGEST_SECONDS = 300
_ENDS_WITHIN_SECONDS = 30.0

pytestmark = pytest.mark.thorough


@contextmanager
def running_demo(folder: Path, *, until: str) -> Iterator["subprocess.Popen[str]"]:
    """The demo, once it has printed this."""
    command = [sys.executable, "-m", "demos.main_job", "--json", str(folder / "demo.json")]
    # A shell starts what runs in the background with SIGINT ignored, and children inherit that.
    demo = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  this test has no threads
    )
    assert demo.stdout is not None
    try:
        assert any(until in line for line in demo.stdout), f"the demo ended before it said {until!r}"
        yield demo
    finally:
        demo.kill()
        demo.wait()


@pytest.mark.parametrize(("killed", "code"), [("twin", 247), ("reaper", -9)])
def test_a_twin_that_is_killed_in_the_middle_costs_three_lines_and_no_traceback(
    killed: str, code: int, tmp_path: Path
) -> None:
    with running_demo(tmp_path, until="job1 is running") as demo:
        started = tree_of(demo.pid) - {demo.pid}
        (reaper,) = [pid for pid in children_of(demo.pid) if _is_twin(pid)]
        (twin,) = [pid for pid in children_of(reaper) if _is_twin(pid)]
        os.kill({"twin": twin, "reaper": reaper}[killed], signal.SIGKILL)
        printed, _ = demo.communicate(timeout=LONGEST_SECONDS)
    assert demo.returncode == 1, printed
    assert "Traceback" not in printed
    last = printed.strip().splitlines()[-3:]
    told = f"demo: NOT ok: the local twin has ended in the middle, with exit code {code}. Reached: "
    assert last[0].startswith(told)
    assert last[1].startswith("The machine: ")
    assert last[2].startswith("What to do: run it again")
    report = json.loads((tmp_path / "demo.json").read_text())
    assert (report["name"], report["ok"]) == ("demo", False)
    assert still_alive(started, within_seconds=_ENDS_WITHIN_SECONDS) == set()


def test_ctrl_c_ends_a_demo_and_all_it_started(tmp_path: Path) -> None:
    with running_demo(tmp_path, until="job1 is running") as demo:
        started = tree_of(demo.pid) - {demo.pid}
        demo.send_signal(signal.SIGINT)
        printed, _ = demo.communicate(timeout=LONGEST_SECONDS)
    assert demo.returncode == 130, printed
    assert "Traceback" not in printed
    assert printed.endswith("demo: stopped; nothing of it is left running.\n")
    assert still_alive(started, within_seconds=_ENDS_WITHIN_SECONDS) == set()


def _is_twin(pid: int) -> bool:
    """``python -m local up``, or the process that ends what it leaves."""
    return b"\0-m\0local\0up" in Path(f"/proc/{pid}/cmdline").read_bytes()
