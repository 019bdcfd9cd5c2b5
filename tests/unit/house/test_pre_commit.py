""".pre-commit-config.yaml beside the Makefile: the hooks are `make fmt` and `make check`."""

import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.markdown import ROOT

CONFIG = ROOT / ".pre-commit-config.yaml"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["repos"]
    return list(repository["hooks"])


def recipe(target: str) -> list[list[str]]:
    """The command of each line of a target, without the folder of its program, which is that of .venv."""
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [command_of(line.partition("$(BIN)/")[2].partition(";")[0]) for line in lines.splitlines()]


def at(stage: str) -> list[list[str]]:
    return [command_of(one["entry"].partition(".venv/bin/")[2]) for one in hooks() if stage in one["stages"]]


def command_of(text: str) -> list[str]:
    """Its words, without the folder that documents are built into."""
    return shlex.split(re.sub(r" --site-dir \S+", "", text))


@pytest.mark.parametrize(("stage", "target"), [("pre-commit", "fmt"), ("pre-push", "check")])
def test_the_hooks_of_a_stage_are_the_lines_of_a_target(stage: str, target: str) -> None:
    commands = at(stage)
    assert commands != []
    assert commands == recipe(target)


def test_a_hook_looks_at_the_whole_tree_as_make_does() -> None:
    files = [hook["id"] for hook in hooks() if hook["pass_filenames"]]
    assert files == ["subject"]  # the file of the commit message
    assert [hook["id"] for hook in hooks() if not hook["always_run"]] == []


def test_no_hook_reports_to_anybody() -> None:
    (sam,) = [one["entry"] for one in hooks() if "/sam " in one["entry"]]
    assert sam.startswith("env SAM_CLI_TELEMETRY=0 ")


def test_pre_commit_takes_the_file() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(CONFIG)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_hook_has_a_stage_that_is_installed() -> None:
    installed = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["default_install_hook_types"]
    assert [one["id"] for one in hooks() if one["stages"] not in ([stage] for stage in installed)] == []
