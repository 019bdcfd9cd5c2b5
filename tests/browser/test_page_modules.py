"""The dashboard's modules that need no browser, tested by node: layouts, figures, feeds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_OWN = Path(__file__).parent
_WEB = _OWN.parents[1] / "client/trainmaster_client/dashboard/web"
_SUITES = sorted((_OWN / "modules").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("node is not installed: apt-get install nodejs")
    if found is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    return found


@pytest.mark.parametrize("suite", _SUITES, ids=lambda path: path.name.partition(".")[0])
def test_modules_do_what_their_suite_says(node: str, suite: Path, tmp_path: Path) -> None:
    """In a copy that says its files are modules, as a browser takes them without being told."""
    shutil.copytree(_WEB, tmp_path / "web")
    shutil.copytree(suite.parent, tmp_path / "modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    told = subprocess.run(
        [node, "--test", f"modules/{suite.name}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TZ": "Europe/Berlin"},
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_each_suite_is_run() -> None:
    assert [path.name for path in _SUITES] == [
        "arrays.test.mjs",
        "every_module.test.mjs",
        "format.test.mjs",
        "money.test.mjs",
        "policy_events.test.mjs",
        "queue_rows.test.mjs",
        "timeline_tracks.test.mjs",
        "timeline_windows.test.mjs",
        "timeline_words.test.mjs",
    ]
