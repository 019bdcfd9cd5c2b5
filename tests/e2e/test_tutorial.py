"""The tutorial, command by command, at a twin of its own: each prints what the page shows."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from tests import transcripts
from tests.e2e.plane import running_plane
from tests.markdown import ROOT, text_of
from tests.transcripts import Step

PAGE = "docs/tutorial.md"
STAYS_UP = (["trainmaster", "local", "up"], ["trainmaster", "dashboard"])
"""Commands that run until Ctrl-C; tests of their own start them."""

pytestmark = pytest.mark.long


def stays_up(step: Step) -> bool:
    return any(words[: len(one)] == one for words in step.commands for one in STAYS_UP)


def test_each_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    steps = list(transcripts.steps(text_of(PAGE)))
    (start,) = steps[0].commands
    policy = yaml.safe_load((ROOT / start[start.index("--policy") + 1]).read_text())
    here = tmp_path / "checkout"
    here.mkdir()
    for name in ("docs", "training"):
        (here / name).symlink_to(ROOT / name)
    with running_plane(tmp_path, policy=policy) as plane:
        env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        env |= plane.twin.environment() | {"COLUMNS": "100", "TZ": "UTC", "NO_COLOR": "1"}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
        played = [step for step in steps if not stays_up(step)]
        for step in played:
            transcripts.play(step, folder=here, env=env)
    assert len(played) >= 9
