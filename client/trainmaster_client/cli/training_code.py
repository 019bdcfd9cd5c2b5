"""``trainmaster training-code``: the training program, and where the client has it and the twin."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.errors import InvalidArgumentError

_PACKAGE = Path(__file__).parents[1]
_COPY = _PACKAGE / "_checkout"

_LAUNCHER = Path("training/launch.py")
_PREEMPTIBLE = (Path("training/__init__.py"), Path("training/preemptible"))
"""Files and folders that a script of your own imports."""
_OLD_NAMES = Path("tools/training/old_names.py")
"""Modules for scripts that import ``training.checkpoint`` and other old names; they go with them."""
_TOOLS = tuple(map(Path, ("training", "tools", "benchmarks/training")))
"""Programs that prepare data, plan, measure and prove, and the training program, which they import."""


def checkout() -> Path:
    """Return the folder with ``local``, ``template.yaml`` and ``training``.

    An installed wheel has its copy of them in the client (pyproject.toml); an editable install has the
    checkout itself.
    """
    return _COPY if _COPY.is_dir() else _PACKAGE.parents[1]


def training_code(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Created if it does not exist.")],
    *,
    launcher_only: Annotated[
        bool, typer.Option("--launcher-only", help="Only the launcher, to put beside a script of your own.")
    ] = False,
    adapters: Annotated[
        bool,
        typer.Option("--adapters", help="The launcher, and the adapters that scripts of your own import."),
    ] = False,
    loop: Annotated[
        bool,
        typer.Option("--loop", help="The launcher, and what a training loop of your own imports."),
    ] = False,
    tools: Annotated[
        bool,
        typer.Option("--tools", help="What prepares data, plans, measures and proves; not for a training."),
    ] = False,
) -> None:
    """Copy the training program into a source directory. No file that is there is changed."""
    source = checkout()
    files: dict[str, Path] = {}
    if launcher_only or adapters or loop:
        files[_LAUNCHER.name] = _LAUNCHER
    if adapters or loop:
        files |= preemptible_files(source)
    if tools:
        files |= {str(file): file for file in _programs(source, _TOOLS)}
    files = files or _whole_program(source)
    if taken := [name for name, file in files.items() if _is_another(folder / name, source / file)]:
        raise InvalidArgumentError(
            f"{folder / taken[0]} already exists and differs.", hint="Remove it, or name another folder."
        )
    for name, file in files.items():
        _copy(source / file, folder / name)
    print(f"{folder}: {len(files)} {'file' if len(files) == 1 else 'files'}")


def preemptible_files(source: Path) -> dict[str, Path]:
    """List what scripts of your own import, by the name that each file gets beside them.

    Both ``--adapters`` and ``--loop`` copy it: ``training/preemptible`` is whole or of no use.
    """
    files = {str(file): file for file in _programs(source, _PREEMPTIBLE)}
    return files | {f"training/{_OLD_NAMES.name}": _OLD_NAMES}


def _whole_program(source: Path) -> dict[str, Path]:
    """List what a job of the training program runs."""
    return {str(file.relative_to("training")): file for file in _programs(source, [Path("training")])}


def _programs(source: Path, places: Iterable[Path]) -> list[Path]:
    """List the Python files at some places of the checkout, by their paths in it."""
    files = [
        path
        for place in places
        for path in ([source / place] if place.suffix else sorted((source / place).rglob("*.py")))
    ]
    return [path.relative_to(source) for path in files if "__pycache__" not in path.parts]


def _is_another(there: Path, ours: Path) -> bool:
    return there.exists() and (not there.is_file() or there.read_bytes() != ours.read_bytes())


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise InvalidArgumentError(
            f"{target} cannot be written: {error.strerror}.", hint="Name another folder."
        ) from error
