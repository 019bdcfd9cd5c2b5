"""Places of a corpus's files, and a reader of ranges that fetches whole blocks ahead and checks them."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from training.data.fetchers import BlockKey, Fetchers, Run, runs_of
from training.data.index import BlockFile, checksum
from training.errors import DataError

CACHE_BYTES = 192 * 2**20
"""Bytes of blocks that one rank keeps. A window of the order is 64 chunks of 2**19 tokens, not aligned to
blocks: at most 128 blocks of 1 MiB for uint16 and 192 for uint32."""
_THREADS, _STREAMS = 8, 16
"""Threads that read a directory; those that read over a network, where each waits for its first byte."""


class Place(Protocol):
    """A folder of files that are read in ranges, by several threads at once."""

    @property
    def title(self) -> str:
        """Name of the place in messages."""

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes of every file, by name."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return bytes of a file; they are fewer than ``size`` only at its end.

        Raises:
            DataError: The file cannot be read.
        """


@runtime_checkable
class StreamedPlace(Place, Protocol):
    """A place where each request has a price and a wait, so that one for several blocks is better."""

    def stream(self, name: str, offset: int, sizes: Sequence[int]) -> Iterator[bytes]:
        """Yield parts of a file that lie side by side, each as it arrives.

        It ends early, without an error, where something is wrong: ``read`` then says what.
        """


class DirectoryPlace:
    """A local directory, or a channel of a SageMaker job: a copy (File mode) or a window on S3 (FastFile).

    FastFile fetches what is read, so whole blocks suit it; a memory map would fetch single pages.
    """

    def __init__(self, path: Path, *, title: str) -> None:
        self._path, self.title = path, title

    def sizes(self) -> Mapping[str, int]:
        try:
            return {entry.name: entry.stat().st_size for entry in os.scandir(self._path) if entry.is_file()}
        except OSError as error:
            raise self._failed(error) from error

    def read(self, name: str, offset: int, size: int) -> bytes:
        try:
            with (self._path / name).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> DataError:
        return DataError(
            place=self.title,
            problem=f"{error.strerror or error}: {error.filename or self._path}",
            remedy="check that it is there and that the job may read it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    file: int
    """Number of the file among those of the reader."""
    offset: int
    size: int


class BlockReader:
    """Reader of ranges from any place; one thread uses it."""

    def __init__(
        self,
        place: Place,
        files: Sequence[BlockFile],
        *,
        block_bytes: int,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._block_bytes, self._capacity = block_bytes, max(1, cache_bytes // block_bytes)
        self._blocks: OrderedDict[BlockKey, Future[bytes]] = OrderedDict()
        self._threads = _STREAMS if isinstance(place, StreamedPlace) else _THREADS
        self._joins = isinstance(place, StreamedPlace)
        fetch = _Fetch(place=place, files=files, block_bytes=block_bytes)
        self._fetchers = Fetchers(fetch, threads=self._threads)

    def expect(self, ranges: Sequence[Range]) -> None:
        """Start to fetch the blocks of these ranges, as far as there is room for them."""
        keys = dict.fromkeys(key for span in ranges for key in self._keys(span))
        wanted = list(keys)[: self._capacity]
        if self._joins:
            missing = [key for key in wanted if key not in self._blocks]
            for run in runs_of(missing, threads=self._threads):
                self._blocks.update(zip(run, self._fetchers.order(run), strict=True))
        for key in wanted:
            self._block(key)

    def read(self, span: Range) -> bytes:
        """Return the bytes of a range. Raises DataError if a block is unreadable or not as it was written."""
        number, start = divmod(span.offset, self._block_bytes)
        if start + span.size <= self._block_bytes:
            return self._part((span.file, number), start, start + span.size)
        parts = []
        for key in self._keys(span):
            start = span.offset - key[1] * self._block_bytes
            parts.append(self._part(key, max(0, start), start + span.size))
        return b"".join(parts)

    def _part(self, key: BlockKey, start: int, end: int) -> bytes:
        block = self._block(key).result()
        if start == 0 and end >= len(block):
            # Handed over, not kept: who reads whole blocks goes on, and new memory costs more than the GET.
            del self._blocks[key]
            return block
        return block[start:end]

    def _keys(self, span: Range) -> Iterator[BlockKey]:
        first = span.offset // self._block_bytes
        last = (span.offset + span.size - 1) // self._block_bytes
        return ((span.file, block) for block in range(first, last + 1))

    def _block(self, key: BlockKey) -> "Future[bytes]":
        future = self._blocks.get(key)
        if future is None:
            future = self._blocks[key] = self._fetchers.order((key,))[0]
        self._blocks.move_to_end(key)
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)
        return future


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetch:
    """Function that fetches and checks a block, without the reader, which threads would keep alive."""

    place: Place
    files: Sequence[BlockFile]
    block_bytes: int

    def __call__(self, run: Run) -> Iterator[Callable[[], bytes]]:
        stream = self._stream(run) if len(run) > 1 else iter(())
        return (partial(self._checked, key, stream) for key in run)

    def _stream(self, run: Run) -> Iterator[bytes]:
        if not isinstance(self.place, StreamedPlace):
            return iter(())
        (number, first), file = run[0], self.files[run[0][0]]
        assert all(key[0] == number for key in run)
        sizes = [self._size(key) for key in run]
        return self.place.stream(file.name, first * self.block_bytes, sizes)

    def _size(self, key: BlockKey) -> int:
        return min(self.block_bytes, self.files[key[0]].bytes - key[1] * self.block_bytes)

    def _checked(self, key: BlockKey, stream: Iterator[bytes]) -> bytes:
        """Return the stream's next part, or the block by itself where the stream has ended; check it."""
        file, number = self.files[key[0]], key[1]
        offset, size = number * self.block_bytes, self._size(key)
        block = next(stream, None)
        if block is None:
            block = self.place.read(file.name, offset, size)
        actual = f"{checksum(block)} of {len(block)} bytes"
        wanted = f"{file.blocks[number]} of {size} bytes"
        if actual != wanted:
            raise DataError(
                place=self.place.title,
                problem=f"{file.name} is damaged at byte {offset}: its checksum is {actual}, "
                f"the index has {wanted}",
                remedy="copy this shard again from where it was prepared",
            )
        return block
