"""CheckpointStore over a directory: that of one host, one on each of several, or one that they all mount."""

import errno
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from io import IOBase
from pathlib import Path

from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from training.preemptible.checkpoint.hashes import HashingWriter, VerifyingReader
from training.preemptible.checkpoint.manifest import MANIFEST
from training.preemptible.checkpoint.store import is_checkpoint

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class LocalStore:
    is_shared = False
    original = None

    def __init__(self, root: Path) -> None:
        self._root, self.location = root, str(root)

    def checkpoints(self) -> list[str]:
        if not self._root.exists():
            return []
        return [path.name for path in self._root.iterdir() if is_checkpoint(path.name)]

    def sizes(self, checkpoint: str) -> Mapping[str, int]:
        place = self._root / checkpoint
        return {path.name: path.stat().st_size for path in place.iterdir()} if place.exists() else {}

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        _sync(path.parent)
        _sync(self._root)

    def remove(self, checkpoint: str) -> None:
        place = self._root / checkpoint
        (place / MANIFEST).unlink(missing_ok=True)
        # Hosts that mount the same directory all do this at once.
        with suppress(FileNotFoundError):
            for path in place.iterdir():
                path.unlink(missing_ok=True)
            place.rmdir()

    def abort_uploads(self) -> None:
        """Do nothing: what a directory has of a file is listed, and removed with its checkpoint."""

    def writer(self, checkpoint: str) -> StorageWriter:
        # Nothing is copied ahead from a GPU: a thread that did would hold memory on the first one.
        writer = HashingWriter(self._root / checkpoint, per_thread_copy_ahead=0)
        writer.fs = _Files()
        return writer

    def reader(self, checkpoint: str, index: Metadata, seconds: dict[str, float]) -> StorageReader:
        return VerifyingReader(self._root / checkpoint, index=index, seconds=seconds)

    def explained(self, error: BaseException) -> str | None:
        if not isinstance(error, OSError):
            return None
        if error.errno in _FULL:
            return f"no space left in {self._root}: ask for a larger volume, or keep fewer checkpoints"
        if error.errno in _FORBIDDEN:
            return f"{error.filename or self._root} may not be written or read: {error.strerror}"
        return f"{error.filename or self._root}: {error.strerror or error}"


class _Files(FileSystem):
    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Generator[IOBase, None, None]:
        """Open a file as torch does, but raise OSError if the disk is full.

        The writer of torch.save, which closes its half-written file on the way out, would hide that error
        behind one of its own about positions.
        """
        try:
            with super().create_stream(path, mode) as stream:
                yield stream
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):
                raise error.__context__ from error
            raise


def _sync(directory: Path) -> None:
    """Make the names in this directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
