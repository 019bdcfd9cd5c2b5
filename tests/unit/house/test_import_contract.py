"""The import contract sees each break of purity that it is there for."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAYER = ROOT / "layers/trainmaster/trainmaster"
BREAKS = {
    "core/planning/planner.py": ("import pathlib", "import socket", "import time"),
    "core/jobs/clock.py": ("import boto3", "from trainmaster.bootstrap import wiring"),
    "core/lifecycle/logs.py": ("import logging", "import random"),
    "core/costs/prices.py": ("import trainmaster.core.planning.budgets",),
    "api/views.py": ("import boto3",),
    "api/router.py": ("import botocore.session",),
    "services/observer.py": ("from trainmaster.adapters.sagemaker import TrainingJobs",),
}
"""By file; one of no such name is new."""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of a copy of the layer with all breaks in it, each in a function of its own."""
    root = tmp_path_factory.mktemp("broken")
    shutil.copytree(LAYER, root / "trainmaster", ignore=shutil.ignore_patterns("__pycache__"))
    for name, lines in BREAKS.items():
        with (root / "trainmaster" / name).open("a", encoding="utf-8") as file:
            file.writelines(f"\n\ndef _break_{number}():\n    {line}\n" for number, line in enumerate(lines))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = re.findall(r"(?ms)^\[\[tool\.importlinter\.contracts\]\].*?(?=^\[|\Z)", text)
    ours = [block for block in contracts if not re.search(r'"(trainmaster_client|training|local)\b', block)]
    head = '[tool.importlinter]\nroot_packages = ["trainmaster"]\ninclude_external_packages = true\n\n'
    (root / "pyproject.toml").write_text(head + "\n".join(ours), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ran = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(root)}
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return re.sub(r"\s+", " ", ran.stdout)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        pytest.param("core.planning.planner", "pathlib", id="the planner reads files"),
        pytest.param("core.planning.planner", "socket", id="the planner opens sockets"),
        pytest.param("core.planning.planner", "time", id="the planner asks the clock"),
        pytest.param("core.jobs.clock", "boto3", id="a new module of the core calls AWS"),
        pytest.param("core.lifecycle.logs", "logging", id="a new module of the core logs"),
        pytest.param("core.lifecycle.logs", "random", id="a new module of the core draws"),
        pytest.param("api.views", "boto3", id="views call AWS"),
        pytest.param("api.router", "botocore", id="the router calls AWS"),
    ],
)
def test_a_forbidden_import_is_named(verdict: str, importer: str, imported: str) -> None:
    assert f"trainmaster.{importer} -> {imported}" in verdict


def test_a_new_module_that_imports_the_composition_root_is_named(verdict: str) -> None:
    assert "trainmaster.core.jobs.clock -> trainmaster.bootstrap" in verdict


def test_a_service_that_imports_an_adapter_is_named(verdict: str) -> None:
    assert "trainmaster.services.observer -> trainmaster.adapters.sagemaker" in verdict


def test_two_packages_of_the_core_that_import_each_other_are_named(verdict: str) -> None:
    assert ".costs -> .planning" in verdict or ".planning -> .costs" in verdict


def test_the_core_asks_no_clock_and_no_environment_by_ruff() -> None:
    """What is taken from a module that may be imported, as ``datetime.now`` is."""
    source = "from datetime import UTC, datetime\n\nNOW = datetime.now(UTC)\nFILE = open('x')\nimport os\n"
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--output-format", "concise"]
    command += ["--stdin-filename", str(LAYER / "core/jobs/clock.py"), "--select", "TID251,PTH123", "-"]
    ran = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
    assert [code for code in ("datetime.datetime.now", "`os`", "PTH123") if code not in ran.stdout] == []


def test_the_contract_names_folders_and_covers_whatever_comes() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = [one for one in contracts["contracts"] if one.get("containers") == ["trainmaster"]]
    assert layers["exhaustive"] is True


CLIENT = ROOT / "client/trainmaster_client"


def test_a_new_module_of_the_engine_that_reads_clock_chance_or_files_is_named(tmp_path: Path) -> None:
    for package in (LAYER, CLIENT):
        shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    forbidden = ("time", "random", "pathlib")
    lines = [f"def _break_{name}():\n    import {name}\n" for name in forbidden]
    (tmp_path / "trainmaster_client/simulate/engine/new.py").write_text("\n\n".join(lines), encoding="utf-8")
    (tmp_path / "trainmaster_client/simulate/stray.py").write_text("", encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = re.findall(r"(?ms)^\[\[tool\.importlinter\.contracts\]\].*?(?=^\[|\Z)", text)
    ours = [block for block in contracts if re.search(r'^id = "(simulate|replays)"', block, re.MULTILINE)]
    head = '[tool.importlinter]\nroot_packages = ["trainmaster", "trainmaster_client"]\n'
    head += "include_external_packages = true\n\n"
    (tmp_path / "pyproject.toml").write_text(head + "\n".join(ours), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    told = re.sub(r"\s+", " ", ran.stdout)
    unseen = [name for name in forbidden if f"trainmaster_client.simulate.engine.new -> {name}" not in told]
    assert (ran.returncode, unseen, "stray" in told) == (1, [], True), told


def test_the_engine_asks_no_clock_by_ruff() -> None:
    source = "from datetime import UTC, datetime\n\nNOW = datetime.now(UTC)\nFILE = open('x')\n"
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--output-format", "concise"]
    command += ["--stdin-filename", str(CLIENT / "simulate/engine/new.py"), "--select", "TID251,PTH123", "-"]
    ran = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
    assert [code for code in ("datetime.datetime.now", "PTH123") if code not in ran.stdout] == []
