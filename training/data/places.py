"""Where the files of a corpus lie, as its reader sees it; and a directory as one such place."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from training.errors import DataError


class Place(Protocol):
    """A folder of files that are read in ranges, by several threads at once."""

    @property
    def told(self) -> str:
        """Its name in messages."""

    def sizes(self) -> Mapping[str, int]:
        """Every file and its bytes."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """These bytes of a file; fewer only at its end.

        Raises:
            DataError: It cannot be read.
        """


class DirectoryPlace:
    """A local directory, or a channel of a SageMaker job: a copy (File mode) or a window on S3 (FastFile).

    FastFile fetches what is read: whole blocks by `pread` are what it serves well, a memory map would
    fetch page by page.
    """

    def __init__(self, path: Path, *, told: str) -> None:
        self._path, self._told = path, told

    @property
    def told(self) -> str:
        return self._told

    def sizes(self) -> Mapping[str, int]:
        try:
            return {one.name: one.stat().st_size for one in os.scandir(self._path) if one.is_file()}
        except OSError as error:
            raise self._failed(error) from error

    def read(self, name: str, offset: int, size: int) -> bytes:
        try:
            descriptor = os.open(self._path / name, os.O_RDONLY)
            try:
                return _read_range(descriptor, offset, size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> DataError:
        return DataError(
            place=self._told,
            problem=f"{error.strerror or error}: {error.filename or self._path}",
            remedy="check that it is there and that the job may read it",
        )


def _read_range(descriptor: int, offset: int, size: int) -> bytes:
    """`pread` may return early."""
    parts = []
    while size > 0 and (part := os.pread(descriptor, size, offset)):
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)
