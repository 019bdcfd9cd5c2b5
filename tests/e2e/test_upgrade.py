"""Earlier stacks become today's and go back, on MiniStack; also the newest release, once there is one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from demos.deployed.ministack import PROGRAM
from tests.markdown import ROOT
from tests.upgrade import commits

MINUTES = 40

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PROGRAM.exists(), reason="MiniStack is not installed; make upgrade-check installs it"
    ),
]


def upgraded(commit: str, written: Path) -> None:
    if not commits.is_here(commit):
        pytest.skip(f"{commit} is not in this clone; git fetch --unshallow brings it")
    done = subprocess.run(
        [sys.executable, "-m", "tests.upgrade", "--earlier", commit, "--json", str(written)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    report = json.loads(written.read_text())
    assert [one for one in report["checks"] if not one["ok"]] == [], done.stdout
    assert done.returncode == 0


def test_the_oldest_stack_that_can_be_upgraded_is_upgraded_and_rolled_back(tmp_path: Path) -> None:
    upgraded(commits.EARLIEST, tmp_path / "upgrade.json")


def test_the_oldest_stack_that_finds_who_waits_after_a_rollback(tmp_path: Path) -> None:
    upgraded(commits.ONE_ORDER, tmp_path / "upgrade.json")


def test_the_newest_release_is_upgraded_and_rolled_back(tmp_path: Path) -> None:
    newest = commits.newest_release(commits.tags())
    if newest is None:
        pytest.skip("there is no tag vX.Y.Z yet")
    upgraded(newest, tmp_path / "upgrade.json")
