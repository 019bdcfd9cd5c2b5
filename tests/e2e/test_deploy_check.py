"""The real template, deployed by the SAM CLI onto MiniStack, with the four jobs on it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from demos.deployed.ministack import PROGRAM

ROOT = Path(__file__).parents[2]
MINUTES = 10

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PROGRAM.exists(), reason="MiniStack is not installed; make deploy-check installs it"
    ),
]


def test_the_template_deploys_runs_the_four_jobs_and_leaves_no_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demos.deploy_check", "--json", str(tmp_path / "deploy.json")],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    report = json.loads((tmp_path / "deploy.json").read_text())
    assert [one for one in report["checks"] if not one["ok"]] == [], done.stdout
    assert done.returncode == 0
    assert {one["status"] for one in report["facts"]["resources"]} == {"CREATE_COMPLETE"}
    assert _commands_with(str(tmp_path)) == []


def _commands_with(text: str) -> list[str]:
    """Command lines and working folders of living processes that name it, this one's apart."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().replace("\0", " ")
            where = str((folder / "cwd").readlink())
        except OSError:
            continue
        if int(folder.name) != os.getpid() and (text in command or text in where):
            found.append(f"{command} in {where}")
    return found
