"""A copy of the newest checkpoint's shards on a disk that outlives the job, as a warm pool's cache does.

    <cache>/checkpoint/<store>-<checkpoint>-<save>/__0_0.distcp ...

Each host copies what its ranks write. A copy's folder is named after its original: the store, the step and
the random number of that very save, which torch keeps in the checkpoint's index. So what an earlier job or an
unfinished save left is never taken for it. A file gets its name when it is whole and on the disk.
"""

import hashlib
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

_FREE_SHARE = 0.1
"""Share of the disk that a copy leaves free: the job's results are on the same disk."""
_DRAFT = ".draft-"


class Written(Protocol):
    def write(self, data: bytes | memoryview, /) -> object: ...


class HostCopies:
    """The copies of one job's checkpoints on this host, at most one at a time."""

    def __init__(self, cache: Path, *, of: str) -> None:
        self._root, self._of = cache / "checkpoint", of

    def begun(self, checkpoint: str, save: str) -> "HostCopy":
        """Begin a copy, and remove all that is there of other saves. Every rank of a host calls."""
        folder = self._folder(checkpoint, save)
        if self._root.exists():
            for other in self._root.iterdir():
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)  # another rank may be at it
        return HostCopy(folder, {})

    def found(self, checkpoint: str, save: str, sizes: Mapping[str, int]) -> "HostCopy":
        """Return the copy of this save, whose files count only with these ``sizes`` in bytes, by name."""
        return HostCopy(self._folder(checkpoint, save), sizes)

    def _folder(self, checkpoint: str, save: str) -> Path:
        store = hashlib.sha256(self._of.encode()).hexdigest()[:16]
        return self._root / f"{store}-{checkpoint}-{save}"


class HostCopy:
    def __init__(self, folder: Path, sizes: Mapping[str, int]) -> None:
        self._folder, self._sizes = folder, sizes

    def file(self, name: str) -> Path | None:
        """Return the path of a file's whole copy, or None if this host has none."""
        path = self._folder / name
        return path if path.is_file() and path.stat().st_size == self._sizes.get(name) else None

    @contextmanager
    def beside(self, name: str, stream: Written) -> Iterator[io.BufferedIOBase]:
        """Write to both; a copy that does not succeed is given up, and the write to ``stream`` goes on."""
        both = _Both(stream, self._folder / f"{_DRAFT}{name}")
        try:
            yield both
            both.keep_as(self._folder / name)
        finally:
            both.give_up()


class _Both(io.BufferedIOBase):
    def __init__(self, first: Written, copy: Path) -> None:
        self._first, self._path, self._position = first, copy, 0
        self._copy: io.BufferedWriter | None = None
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            self._copy = copy.open("wb")
        except OSError:
            pass

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # as s3torchconnector's
        self._first.write(data)
        size = len(data)
        self._position += size
        if self._copy is not None:
            try:
                self._write_copy(self._copy, data, size)
            except OSError:
                self.give_up()
        return size

    def _write_copy(self, copy: io.BufferedWriter, data: bytes | memoryview, size: int) -> None:
        disk = shutil.disk_usage(self._path.parent)
        if disk.free - size < disk.total * _FREE_SHARE:
            self.give_up()
        else:
            copy.write(data)

    def keep_as(self, path: Path) -> None:
        if self._copy is None:
            return
        try:
            self._copy.flush()
            os.fsync(self._copy.fileno())
            self._path.rename(path)
        except OSError:
            pass  # the draft goes

    def give_up(self) -> None:
        """Remove the draft, if it has not become the copy by now.

        After ``keep_as`` nothing is left to remove.
        """
        copy, self._copy = self._copy, None
        if copy is not None:
            try:
                copy.close()
                self._path.unlink(missing_ok=True)
            except OSError:
                pass  # a draft is never read, and goes with the next checkpoint
