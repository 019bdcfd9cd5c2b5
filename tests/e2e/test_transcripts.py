"""Pages that show a session at the twin, command by command: each prints what the page shows."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from tests import transcripts
from tests.e2e.plane import running_plane
from tests.markdown import ROOT, text_of
from tests.transcripts import Step

POLICIES = ROOT / "docs/examples/policies"
STAYS_UP = (["trainmaster", "local", "up"], ["trainmaster", "dashboard"])
"""Commands that run until Ctrl-C; tests of their own start them."""


@pytest.mark.long
def test_the_tutorial(tmp_path: Path) -> None:
    page = "docs/tutorial.md"
    (start,) = next(transcripts.steps(text_of(page))).commands
    policy = ROOT / start[start.index("--policy") + 1]
    assert played(page, policy=policy, folder=tmp_path) >= 9


@pytest.mark.thorough
def test_the_session_of_those_who_come_from_slurm(tmp_path: Path) -> None:
    page = "docs/guides/migrate-from-slurm.md"
    assert played(page, policy=POLICIES / "first.yaml", folder=tmp_path) >= 8


def played(page: str, *, policy: Path, folder: Path) -> int:
    """How many blocks of the page were run, at a twin with this policy."""
    here = folder / "checkout"
    here.mkdir()
    for name in ("docs", "training"):
        (here / name).symlink_to(ROOT / name)
    with running_plane(folder, policy=yaml.safe_load(policy.read_text())) as plane:
        env = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        env |= plane.twin.environment() | {"COLUMNS": "100", "TZ": "UTC", "NO_COLOR": "1"}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
        steps = [step for step in transcripts.steps(text_of(page)) if not stays_up(step)]
        for step in steps:
            transcripts.play(step, folder=here, env=env)
    return len(steps)


def stays_up(step: Step) -> bool:
    return any(words[: len(one)] == one for words in step.commands for one in STAYS_UP)
