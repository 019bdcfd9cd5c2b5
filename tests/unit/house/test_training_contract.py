"""The contract over the folders of ``training/`` sees each climb, and the folder holds what a job imports."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).parents[3]
TRAINING = ROOT / "training"
PROGRAMS = ("training.train", "training.launch")
COMMANDS = {*PROGRAMS, "training.flight"}
"""Modules that may be started; the third reads what ranks of a hung job wrote, and is part of the second."""


def _contract() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = settings["contracts"]
    (contract,) = [one for one in contracts if one.get("containers") == ["training"]]
    return contract


LAYERS = [[name.strip() for name in layer.split("|")] for layer in _contract()["layers"]]
ROOMS = {name for layer in LAYERS for name in layer if (TRAINING / name).is_dir()}
CLIMBS = [
    pytest.param(room, above, id=f"{room} imports {above}")
    for number, layer in enumerate(LAYERS)
    for room in layer
    for above in LAYERS[number - 1]
    if number > 0 and room in ROOMS
]
"""A new module of each room, and each neighbour above it."""
OUTSIDE = ("trainmaster", "trainmaster_client", "tools")


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the linter says of a copy with all breaks in it, each in a new file."""
    root = tmp_path_factory.mktemp("climbs")
    shutil.copytree(TRAINING, root / "training", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ROOMS:
        lines = [f"def _to_{above}():\n    import training.{above}\n" for _, above in _climbs_of(room)]
        lines += [f"def _out_{name}():\n    import {name}\n" for name in OUTSIDE]
        (root / "training" / room / "unheard_of.py").write_text("\n\n".join(lines), encoding="utf-8")
    (root / "training/preemptible/unheard_of.py").write_text("import training.config\n", encoding="utf-8")
    (root / "training/unplaced.py").write_text("", encoding="utf-8")
    for name in OUTSIDE:
        (root / name).mkdir()
        (root / name / "__init__.py").write_text("", encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = re.findall(r"(?ms)^\[\[tool\.importlinter\.contracts\]\].*?(?=^\[|\Z)", text)
    ours = [one for one in contracts if re.search(r'\nid = "(steps|preemptible|program|alone)"', one)]
    assert len(ours) == 4
    head = f"[tool.importlinter]\nroot_packages = {['training', *OUTSIDE]}\n\n"
    (root / "pyproject.toml").write_text(head + "\n".join(ours), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ran = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(root)}
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return re.sub(r"\s+", " ", ran.stdout)


def _climbs_of(room: str) -> list[tuple[str, str]]:
    return [(str(one.values[0]), str(one.values[1])) for one in CLIMBS if one.values[0] == room]


@pytest.mark.parametrize(("room", "above"), [one for one in CLIMBS if one.values[0] != "preemptible"])
def test_a_new_module_of_a_room_that_imports_from_the_layer_above_is_named(
    verdict: str, room: str, above: str
) -> None:
    assert f"training.{room}.unheard_of -> training.{above}" in verdict


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("room", sorted(ROOMS - {"preemptible"}))
def test_a_new_module_that_imports_the_plane_the_client_or_a_tool_is_named(
    verdict: str, room: str, outside: str
) -> None:
    assert f"training.{room}.unheard_of -> {outside}" in verdict


def test_what_is_copied_as_one_folder_imports_nothing_else_of_the_program(verdict: str) -> None:
    assert "training.preemptible.unheard_of -> training.config" in verdict


def test_a_module_at_the_top_that_has_no_layer_is_named(verdict: str) -> None:
    assert _contract()["exhaustive"] is True
    assert "unplaced" in verdict


def test_the_folder_holds_what_a_job_imports_and_nothing_else() -> None:
    """Two programs start in it, and scripts import the adapters; a tool would be left over."""
    graph = grimp.build_graph("training", cache_dir=None)
    starts = {*PROGRAMS, *(one for one in graph.modules if one.startswith("training.preemptible.adapters."))}
    reached = starts | {one for start in starts for one in graph.find_upstream_modules(start)}
    packages = {one for one in graph.modules if graph.find_children(one)}
    assert graph.modules - reached - packages == set()
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in TRAINING.rglob("*.py")}
    assert {name.removesuffix(".__init__") for name in files} == graph.modules


def test_nothing_in_the_folder_is_started_but_the_two_programs_and_the_reader_of_hangs() -> None:
    started = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in TRAINING.rglob("*.py")
        if "__main__" in path.name or "__name__ == " in path.read_text(encoding="utf-8")
    }
    assert started == COMMANDS


def test_a_job_uploads_none_of_the_old_names() -> None:
    """Where the folder is alone, as in a job, no finder is installed."""
    files = [path.relative_to(TRAINING) for path in TRAINING.rglob("*.py")]
    assert not [path for path in files if {"old_names", "bench", "proof", "plan"} & {path.stem, *path.parts}]
