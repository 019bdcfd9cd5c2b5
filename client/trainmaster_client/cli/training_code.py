"""``trainmaster training-code``: the training program, and where the client has it and the twin."""

import shutil
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.errors import InvalidArgumentError

_PACKAGE = Path(__file__).parents[1]
_COPY = _PACKAGE / "_checkout"

_LAUNCHER = (Path("launch.py"),)

_ADAPTER_PARTS = frozenset({"__init__", "adapters", "agreement", "preempt"})
"""Rooms and files that scripts of other libraries need beside the launcher."""
_LOOP_PARTS = frozenset({"__init__", "agreement", "checkpoint", "errors", "preempt"})
"""Rooms and files that a training loop of your own needs beside the launcher."""

_NOT_FOR_JOBS = frozenset({"__pycache__", "proof", "bench", "scaling"})
"""Tools of the checkout."""


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
        typer.Option(
            "--adapters",
            help="The launcher, and the folder training with the adapters for scripts of your own.",
        ),
    ] = False,
    loop: Annotated[
        bool,
        typer.Option(
            "--loop", help="The launcher, and what a training loop of your own imports to save and stop."
        ),
    ] = False,
) -> None:
    """Copy the training program into a source directory. No file that is there is changed."""
    source = checkout() / "training"
    parts = (_ADAPTER_PARTS if adapters else frozenset()) | (_LOOP_PARTS if loop else frozenset())
    is_whole = not (launcher_only or parts)
    files = {file: file for file in (sorted(_program(source)) if is_whole else _LAUNCHER)}
    files |= {file: Path("training") / file for file in files_of(parts, source)}
    if taken := [file for file, name in files.items() if _is_another(folder / name, source / file)]:
        raise InvalidArgumentError(
            f"{folder / files[taken[0]]} already exists and differs.",
            hint="Remove it, or name another folder.",
        )
    for file, name in files.items():
        _copy(source / file, folder / name)
    print(f"{folder}: {len(files)} {'file' if len(files) == 1 else 'files'}")


def adapter_files(source: Path) -> list[Path]:
    """List what scripts of other libraries need."""
    return files_of(_ADAPTER_PARTS, source)


def files_of(parts: AbstractSet[str], source: Path) -> list[Path]:
    """List the files of some parts of ``training``, a name that they import each other by."""
    return [file for file in sorted(_program(source)) if Path(file.parts[0]).stem in parts]


def _program(source: Path) -> Iterator[Path]:
    for path in source.rglob("*.py"):
        file = path.relative_to(source)
        if _NOT_FOR_JOBS.isdisjoint(file.parts):
            yield file


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
