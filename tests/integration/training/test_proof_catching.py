"""Killed inside a save, and not before or after it: with a stand-in that saves nothing but files."""

import subprocess
import sys
from pathlib import Path
from signal import SIGKILL

from benchmarks.training.proof.kill_schedule import Kill
from benchmarks.training.proof.processes import Catcher

_SAVES = """
import pathlib, sys, threading
root, published = pathlib.Path(sys.argv[1]), sys.argv[2].split(",")
for step in (5, 10):
    print(step, flush=True)
    folder = root / f"step-{step:08d}"
    folder.mkdir(parents=True)
    (folder / "__0_0.distcp").write_bytes(b"PK")
    (folder / ".metadata").write_bytes(b"index")
    if str(step) in published:
        (folder / "manifest.json").write_text("{}")
    else:
        threading.Event().wait()
"""


def _caught(root: Path, *, published: str, from_step: int) -> tuple[int | None, int]:
    command = [sys.executable, "-c", _SAVES, str(root), published]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        seen = [0]
        kill = Kill(step=from_step, signal=SIGKILL, in_save=True)
        catcher = Catcher(process.pid, root, kill, reached=lambda: seen[0])
        assert process.stdout is not None
        for line in process.stdout:
            seen[0] = int(line)
        code = process.wait()
        catcher.end()
    return catcher.caught_at, code


def test_a_save_that_is_not_published_yet_is_caught(tmp_path: Path) -> None:
    assert _caught(tmp_path, published="", from_step=5) == (5, -SIGKILL)
    assert not (tmp_path / "step-00000005/manifest.json").exists()


def test_an_earlier_save_is_let_through(tmp_path: Path) -> None:
    assert _caught(tmp_path, published="5", from_step=6) == (10, -SIGKILL)
    assert (tmp_path / "step-00000005/manifest.json").exists()


def test_what_an_earlier_attempt_left_is_not_taken_for_a_save(tmp_path: Path) -> None:
    (tmp_path / "step-00000020").mkdir()
    (tmp_path / "step-00000020/__0_0.distcp").write_bytes(b"PK")
    assert _caught(tmp_path, published="5,10", from_step=20) == (None, 0)
