"""Which of a library's checkpoints is whole. Libraries write into the folder itself, so a stop may tear one.

A checkpoint is a folder named after its step. Once every rank has written its part, the first puts a
mark into it: the size of each file. A mirror that was interrupted leaves a file out, or cuts it.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

MARK = "whole.json"
_STEP = re.compile(r"(?:checkpoint|step)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    step: int
    files: Mapping[str, int]
    """Bytes by path below the folder."""
    saved_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One folder as it lies there."""

    name: str
    step: int
    mark: Mark | None
    files: Mapping[str, int]


def newest_of(found: list[Found], *, are_marked: bool) -> tuple[Found | None, dict[str, str]]:
    """The newest that is whole, and what is wrong with each newer one, by its name.

    Args:
        found: In any order.
        are_marked: The adapter was here before, so what has no mark was never finished. Else checkpoints
            may have been written before it came, and are taken as the library would take them.
    """
    passed_over: dict[str, str] = {}
    for one in sorted(found, key=lambda one: -one.step):
        why = _tear(one, are_marked=are_marked)
        if why is None:
            return one, passed_over
        passed_over[one.name] = why
    return None, passed_over


def _tear(one: Found, *, are_marked: bool) -> str | None:
    if one.mark is None:
        return "it was never finished" if are_marked else None
    for name, size in sorted(one.mark.files.items()):
        if name not in one.files:
            return f"{name} is missing"
        if one.files[name] != size:
            return f"{name} has {one.files[name]} bytes of {size}"
    return None


def found_in(folder: Path) -> list[Found]:
    return [
        Found(name=path.name, step=step, mark=_read_mark(path), files=_sizes(path))
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and (step := step_in(path.name)) is not None
    ]


def step_in(name: str) -> int | None:
    """Of ``checkpoint-20`` and ``step-00000020``; None: it is no checkpoint's name."""
    match = _STEP.fullmatch(name)
    return int(match[1]) if match else None


def write_mark(folder: Path, *, step: int, now: datetime) -> Mark:
    """In one piece: a crash leaves it out, and the checkpoint counts as torn."""
    mark = Mark(step=step, files=_sizes(folder), saved_at=now.isoformat(timespec="milliseconds"))
    draft = folder / f".{MARK}"
    draft.write_text(json.dumps({"step": step, "files": dict(mark.files), "saved_at": mark.saved_at}))
    draft.rename(folder / MARK)
    return mark


def remove_mark(folder: Path) -> None:
    """Before it is written again: half of it must not count as the whole that it was."""
    (folder / MARK).unlink(missing_ok=True)


def remove_all_but(folder: Path, newest: int) -> None:
    """Of the whole ones keep this many; what is torn goes with those that are older."""
    whole = sorted((one.step for one in found_in(folder) if one.mark is not None), reverse=True)
    kept_from = whole[newest - 1] if len(whole) >= newest else 0
    for one in found_in(folder):
        if one.step < kept_from:
            shutil.rmtree(folder / one.name)


def _read_mark(folder: Path) -> Mark | None:
    """One that cannot be read was not written by us to its end: as if there were none."""
    try:
        said = json.loads((folder / MARK).read_bytes())
        return Mark(step=int(said["step"]), files=dict(said["files"]), saved_at=str(said["saved_at"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    return dict(sorted(_sized(folder)))


def _sized(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in {MARK, f".{MARK}"}:
            yield path.relative_to(folder).as_posix(), path.stat().st_size
