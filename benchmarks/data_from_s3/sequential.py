"""Readers of whole files over a network, as mounts and file systems for S3 read them."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from benchmarks.data_from_s3.files import LARGE, SMALL
from benchmarks.data_from_s3.readers import BotoRanges
from benchmarks.data_from_s3.source import PIECE, Reader

_PART_BYTES, _WINDOW = 8 * 2**20, 32
"""Mountpoint's part, and parts that it has under way at most here: 256 MiB; its own bound is 2 GiB."""


class _WholeFiles(BotoRanges):
    """Opens one object after the other and reads it from its beginning."""

    seeks = False

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return (read(self.files.amount.sample_bytes) for read in self._streamed(SMALL, self.files.small))

    def samples(self) -> Iterator[bytes]:
        raise AssertionError(f"{type(self).__name__} reads whole files alone")

    def _size(self, folder: str) -> int:
        return self.files.amount.shard_bytes if folder == LARGE else self.files.amount.sample_bytes

    def part(self, folder: str, name: str, begin: int, end: int) -> bytes:
        answer = self.client.get_object(
            Bucket=self.source.bucket, Key=f"{folder}/{name}", Range=f"bytes={begin}-{end - 1}"
        )
        content: bytes = answer["Body"].read()
        return content


class MountpointLike(_WholeFiles):
    """Parts of 8 MiB, twice as many under way each time one was used, as Mountpoint widens its window."""

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        with ThreadPoolExecutor(_WINDOW) as pool:
            for name in names:
                pieces = self._ahead(pool, folder, name)
                yield lambda _, pieces=pieces: next(pieces, b"")  # type: ignore[misc]

    def _ahead(self, pool: ThreadPoolExecutor, folder: str, name: str) -> Iterator[bytes]:
        size, width = self._size(folder), 1
        begins = iter(range(0, size, _PART_BYTES))
        under_way: deque[Future[bytes]] = deque()
        while True:
            for begin in begins:
                end = min(begin + _PART_BYTES, size)
                under_way.append(pool.submit(self.part, folder, name, begin, end))
                if len(under_way) >= width:
                    break
            if not under_way:
                return
            part, width = under_way.popleft().result(), min(2 * width, _WINDOW)
            yield from (part[at : at + PIECE] for at in range(0, len(part), PIECE))


class FsspecFiles(_WholeFiles):
    """fsspec's buffered file with its cache for reading ahead, over boto3 where s3fs has aiobotocore."""

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        for name in names:
            with _FsspecFile(self, folder, name, size=self._size(folder)) as file:
                yield file.read


class _FsspecFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    DEFAULT_BLOCK_SIZE = 50 * 2**20  # that of s3fs

    def __init__(self, reader: _WholeFiles, folder: str, name: str, *, size: int) -> None:
        self._reader, self._folder, self._name = reader, folder, name
        super().__init__(AbstractFileSystem(), name, mode="rb", size=size)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._reader.part(self._folder, self._name, start, end)


SEQUENTIAL: dict[str, type[Reader]] = {"mountpoint-like": MountpointLike, "fsspec": FsspecFiles}
