"""The checkpoint directory as files: names, manifests, what is complete, what is kept.

    step-00000020/           a published checkpoint
        __0_0.distcp ...     the shards, one file a rank
        .metadata            torch's index of them
        metadata             the same: a mirror may leave out files that begin with a dot
        manifest.json        what was saved, and the size of each file
    status.json              the newest published checkpoint; its age is the age of the progress
    .incomplete-step-...     being written; ignored, and removed by the next attempt

A directory appears under its name only when whole (rename). SageMaker mirrors it to S3 file by file and
in no known order, so a copy that comes back from there may lack files: the sizes tell.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any

_PREFIX = "step-"
_INCOMPLETE = ".incomplete-"
_MANIFEST = "manifest.json"
_STATUS = "status.json"
_MAIN_FILE = "__0_0.distcp"  # torch.distributed.checkpoint: first file of rank 0
_INDEX, _INDEX_COPY = ".metadata", "metadata"
_KEPT = 2
"""A torn newest checkpoint leaves one to go back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One that is whole."""

    step: int
    path: Path
    options: Mapping[str, str]
    """The options it was trained with that another attempt may not change."""

    @property
    def main_file(self) -> str:
        """Relative to the checkpoint directory, so also to its place in S3."""
        return f"{self.path.name}/{_MAIN_FILE}"

    def sha256(self) -> str:
        """Of the main file."""
        with (self.path / _MAIN_FILE).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """A checkpoint directory that cannot be used, and why."""

    name: str
    reason: str


class CheckpointDirectory:
    def __init__(self, root: Path) -> None:
        self._root = root

    def survey(self) -> tuple[list[Checkpoint], list[Torn]]:
        """Those that are whole, newest first, and those that are not."""
        whole: list[Checkpoint] = []
        torn: list[Torn] = []
        for path in sorted(self._root.glob(f"{_PREFIX}*"), reverse=True):
            found = _inspect(path)
            if isinstance(found, Checkpoint):
                whole.append(found)
            else:
                torn.append(found)
        return whole, torn

    def clear_incomplete(self) -> None:
        """Remove what an attempt was writing when it was killed."""
        for path in self._root.glob(f"{_INCOMPLETE}*"):
            shutil.rmtree(path)

    def incomplete(self, step: int) -> Path:
        """Where the files of a new checkpoint are written."""
        return self._root / f"{_INCOMPLETE}{_name(step)}"

    def publish(self, step: int, *, total_steps: int, options: Mapping[str, str]) -> None:
        """Give the files written under ``incomplete(step)`` their name; a crash leaves them ignored."""
        written, place = self.incomplete(step), self._root / _name(step)
        shutil.copyfile(written / _INDEX, written / _INDEX_COPY)
        files = {path.name: path.stat().st_size for path in written.iterdir() if path.name != _INDEX}
        _write_json(written / _MANIFEST, {"step": step, "options": dict(options), "files": files})
        if place.exists():  # torn, else this attempt would have resumed from it
            shutil.rmtree(place)
        written.rename(place)
        _sync(self._root)
        self._write_status(step, total_steps)
        self._remove_old()

    def _write_status(self, step: int, total_steps: int) -> None:
        status = {
            "step": step,
            "steps": total_steps,
            "checkpoint": _name(step),
            "updated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        draft = self._root / f".{_STATUS}"
        _write_json(draft, status)
        draft.rename(self._root / _STATUS)

    def _remove_old(self) -> None:
        whole, _ = self.survey()
        kept = {one.path for one in whole[:_KEPT]}
        for path in self._root.glob(f"{_PREFIX}*"):
            if path not in kept:
                shutil.rmtree(path)


def restore_index(checkpoint: Checkpoint) -> None:
    """Bring torch's index back where a mirror left it out."""
    if not (checkpoint.path / _INDEX).exists():
        shutil.copyfile(checkpoint.path / _INDEX_COPY, checkpoint.path / _INDEX)


def _name(step: int) -> str:
    return f"{_PREFIX}{step:08d}"


def _inspect(path: Path) -> Checkpoint | Torn:
    try:
        manifest: dict[str, Any] = json.loads((path / _MANIFEST).read_bytes())
        files: dict[str, int] = manifest["files"]
        for name, size in files.items():
            found = (path / name).stat().st_size
            if found != size:
                return Torn(name=path.name, reason=f"{name} has {found} bytes of {size}")
        return Checkpoint(step=manifest["step"], path=path, options=manifest["options"])
    except FileNotFoundError as error:
        return Torn(name=path.name, reason=f"{Path(error.filename).name} is missing")
    except (ValueError, KeyError):
        return Torn(name=path.name, reason=f"{_MANIFEST} cannot be read")


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    with path.open("w") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Make a rename in it durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
