"""Names of version 0.1: each leads to a module that is there, as an import and as a command."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tools.training.old_names import MOVED, new_name

COMMANDS = {
    "training.bench": "benchmarks.training.bench",
    "training.checkpoint.verify": "tools.training.verify",
    "training.plan": "tools.training.plan",
    "training.prepare": "tools.training.prepare",
    "training.prepare_images": "tools.training.prepare_images",
    "training.proof": "benchmarks.training.proof",
    "training.scaling": "benchmarks.training.scaling",
}


def _ran(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("old", MOVED)
def test_a_name_leads_to_a_module_that_is_there(old: str) -> None:
    assert find_spec(MOVED[old]) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("training.adapters.hf_trainer", "training.preemptible.adapters.hf_trainer"),
        ("training.checkpoint.manifest", "training.preemptible.checkpoint.manifest"),
        ("training.checkpoint.verify", "tools.training.verify"),
        ("training.bench.__main__", "benchmarks.training.bench.__main__"),
        ("training.models.lora", None),
        ("training", None),
        ("trainingcheckpoint", None),
    ],
)
def test_what_is_in_a_package_moved_with_it(old: str, new: str | None) -> None:
    assert new_name(old) == new


def test_every_command_of_before_has_its_program() -> None:
    assert {old: new_name(old) for old in COMMANDS} == COMMANDS


@pytest.mark.parametrize("old", ["training.bench", "training.plan", "training.prepare", "training.proof"])
def test_a_command_of_before_runs_the_program_of_now(old: str) -> None:
    """A package, and modules that load no torch before their help."""
    ran = _ran("-m", old, "--help")
    assert ran.returncode == 0, ran.stderr
    assert f"{old} is now {COMMANDS[old]}" in ran.stderr
    assert "--" in ran.stdout


def test_a_folder_that_an_update_emptied_hides_no_old_name(tmp_path: Path) -> None:
    """As ``git pull`` leaves it where Python has run: nothing in it but compiled files."""
    for folder in ("training", "tools/training", "benchmarks/training"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for empty in ("training/proof/__pycache__", "training/checkpoint/__pycache__"):
        (tmp_path / empty).mkdir(parents=True)
        (tmp_path / empty / "old.cpython-311.pyc").write_bytes(b"")
    lines = [
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}]",
        "import training.checkpoint, training.proof",
        "print(training.checkpoint.__name__, training.proof.__name__)",
    ]
    ran = _ran("-P", "-W", "ignore", "-c", "\n".join(lines), folder=tmp_path)
    assert ran.stdout == "training.preemptible.checkpoint benchmarks.training.proof\n", ran.stderr


def test_a_job_that_has_the_folder_alone_has_no_old_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "training", tmp_path / "training", ignore=shutil.ignore_patterns("__pycache__"))
    ran = _ran("-S", "-c", "import training.preemptible.preempt, training.preempt", folder=tmp_path)
    assert "No module named 'training.preempt'" in ran.stderr
