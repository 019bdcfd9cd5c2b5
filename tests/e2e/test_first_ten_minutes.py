"""The beginning that install.md shows, as its reader makes it: wheel, twin, ``docs/examples/install``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import ROOT

MINUTES = 30
"""Of a machine that others use, without pip's cache."""


@pytest.mark.long
@pytest.mark.parametrize("way", ["wheel", "checkout"])
def test_a_stranger_sees_the_first_fit_in_the_queue(way: str, tmp_path: Path) -> None:
    written = tmp_path / "first.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.first_ten_minutes", "--way", way, "--json", str(written)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    report = json.loads(written.read_text())
    assert [one for one in report["checks"] if one["ok"] is False] == [], done.stdout
    assert done.returncode == 0
    assert [one["state"] for one in report["facts"][way]["afterwards"]] == ["completed"]
