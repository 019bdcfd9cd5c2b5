"""Hashes of a checkpoint: taken while it is written, verified while it is read.

    manifest.json     names the algorithm, and has the hash of
    metadata          torch's index: with the place of each item it has the hash of
    __0_0.distcp ...  the item's bytes: one tensor, or the part of one that a rank wrote

So a rank that reads some items verifies those and no others, and an item in the place of another
is found out too. An index without hashes is that of a checkpoint written before they were taken.

The hash is the SHA-256 of the multilinear hashes of all rows: a row is 8 KiB, taken as 64-bit numbers, each
times an odd factor of its place, summed modulo 2**64 (Lemire and Kaser, Strongly universal string hashing is
fast, 2014). What is left after the last row goes into the SHA-256 as it is. It takes an eighth of SHA-256's
time. It is against damage, not against an enemy: who may write a shard may write a manifest (ADR 62).
"""

import io
import time
import warnings
from array import array
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

import torch
from torch.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    _StorageInfo,
    _StorageReaderTransforms,
    _StorageWriterTransforms,
)
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Seconds: TypeAlias = dict[str, float]
"""Seconds of a load by phase; functions add to it."""

_FIELD = "hash"
"""Attribute of an item's place in torch's index that holds its hash; a reader without this module ignores
it."""
_WORDS = 1024
_ROW_BYTES = 8 * _WORDS
_SEED = 62
_BLOCK_BYTES = 2**20
"""Bytes read and hashed at a time: a block is still in a core's cache when its hash is taken."""


class DamagedError(Exception):
    """The bytes read are not those that were written, or hold something this program does not read."""


class Hasher:
    """Takes the hash of one item, given in parts of any size."""

    def __init__(self) -> None:
        self._sha256, self._rest = sha256(), bytearray()

    def update(self, data: bytes | memoryview) -> None:
        data = memoryview(data).cast("B")
        if self._rest:
            missing = _ROW_BYTES - len(self._rest)
            self._rest += data[:missing]
            data = data[missing:]
            if len(self._rest) < _ROW_BYTES:
                return
            self._add(memoryview(self._rest))
        whole = len(data) // _ROW_BYTES * _ROW_BYTES
        if whole:
            self._add(data[:whole])
        self._rest = bytearray(data[whole:])

    def hexdigest(self) -> str:
        final = self._sha256.copy()
        final.update(self._rest)
        return final.hexdigest()

    def _add(self, rows: memoryview) -> None:
        factors = _factors()
        sums = torch.mv(torch.frombuffer(rows, dtype=torch.int64).view(-1, _WORDS), factors)
        self._sha256.update(array("q", sums.tolist()))


@cache
def _factors() -> torch.Tensor:
    """Make the factors: odd, so that any change of one number changes the sum.

    Signed, the same modulo 2**64.
    """
    # The same for good, whatever generators become: a checkpoint's hashes must be those of another release.
    digests = (sha256(f"{_SEED}/{place}".encode()).digest() for place in range(_WORDS))
    warnings.filterwarnings("ignore", message="The given buffer is not writable")
    return torch.tensor([int.from_bytes(digest[:8], "little", signed=True) | 1 for digest in digests])


def digest_of(content: bytes) -> str:
    hasher = Hasher()
    hasher.update(content)
    return hasher.hexdigest()


class HashingWriter(FileSystemWriter):
    """Takes the hash of each item while it is written, and leaves it in the index."""

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        self.transforms = taken = _HashingTransforms()
        written = super().write_data(plan, planner)
        for result in written.value():
            setattr(result.storage_data, _FIELD, taken.hashers[result.index].hexdigest())
        return written

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        super().finish(metadata, results)
        # Before 2.12 torch writes the places into a copy, and the save returns an index without them.
        metadata.storage_data = {
            result.index: result.storage_data for written in results for result in written
        }


class _HashingTransforms(_StorageWriterTransforms):
    def __init__(self) -> None:
        super().__init__()
        self.hashers: dict[MetadataIndex, Hasher] = {}

    def transform_save_stream(
        self, write_item: WriteItem, raw_stream: io.IOBase
    ) -> tuple[IO[bytes], list[str]]:
        hasher = self.hashers[write_item.index] = Hasher()
        return _HashedStream(raw_stream, hasher), []  # type: ignore[return-value]  # all that torch calls


class _HashedStream(io.IOBase):
    """The stream of one item on its way into a file; it updates the item's hash."""

    def __init__(self, file: io.IOBase, hasher: Hasher) -> None:
        self._file, self._hasher = file, hasher

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | memoryview, /) -> int:
        self._hasher.update(data)
        return self._file.write(data)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Flush the item; the file stays open for the next one."""
        self._file.flush()


class VerifyingReader(FileSystemReader):
    """Verifies each item that it reads before a byte of it is decoded; the index was verified before.

    ``path`` is a local directory; a reader of another store passes its own arguments on. ``seconds`` gets
    the times of ``read``, ``apply``, and ``verify``, which is how long the load waits for hashes.
    """

    def __init__(self, *arguments: Any, index: Metadata, seconds: Seconds, **keywords: Any) -> None:  # noqa: ANN401  torch's
        super().__init__(*arguments, **keywords)
        self._index, self._seconds = index, seconds

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:  # noqa: ANN401  torch's signature
        return self._index

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read and verify the items of the plan. Raises DamagedError."""
        began = time.perf_counter()
        with ThreadPoolExecutor(1, thread_name_prefix="verify") as beside:
            places = self.storage_data
            largest = max((places[read.storage_index].length for read in plan.items), default=0)
            self.transforms = _VerifyingTransforms(places, bytearray(largest), beside, self._seconds)
            try:
                return super().read_data(plan, planner)
            finally:
                self._seconds["apply"] = time.perf_counter() - began - sum(self._seconds.values())


class _VerifyingTransforms(_StorageReaderTransforms):
    """Reads each item whole, and takes its hash meanwhile: block by block, in a thread beside the reading.

    All items are read into the same memory, one after the other. Fresh memory for each would cost more than
    its hash: the system clears a page when it is first written to.
    """

    def __init__(
        self, places: dict[Any, _StorageInfo], memory: bytearray, beside: Executor, seconds: Seconds
    ) -> None:
        super().__init__()
        self._places, self._memory, self._beside, self._seconds = places, memory, beside, seconds

    def transform_load_stream(
        self, read_item: ReadItem, _transform_descriptors: object, raw_stream: IO[bytes]
    ) -> IO[bytes]:
        place, name = self._places[read_item.storage_index], read_item.storage_index.fqn
        content = memoryview(self._memory)[: place.length]
        blocks = self._read(cast("io.BufferedIOBase", raw_stream), content, place, name)
        wanted: str | None = getattr(place, _FIELD, None)
        if wanted is None:
            deque(blocks, maxlen=0)
        else:
            self._verify(blocks, wanted, place, name)
        return cast("IO[bytes]", _Content(content))

    def _read(
        self, source: io.BufferedIOBase, content: memoryview, place: _StorageInfo, name: str
    ) -> Iterator[memoryview]:
        """Yield the item's blocks as they are read. Raises DamagedError if the file ends within it."""
        read = 0
        while read < len(content):
            with timed(self._seconds, "read"):
                size = source.readinto(content[read : read + _BLOCK_BYTES])
            if not size:
                raise DamagedError(f"{place.relative_path} ends within {name}")
            yield content[read : read + size]
            read += size

    def _verify(self, blocks: Iterator[memoryview], wanted: str, place: _StorageInfo, name: str) -> None:
        hasher = Hasher()
        updates = []
        newest = next(blocks, memoryview(b""))
        for block in blocks:
            updates.append(self._beside.submit(hasher.update, newest))
            newest = block
        with timed(self._seconds, "verify"):
            for update in updates:
                update.result()
            hasher.update(newest)  # there is nothing left to read meanwhile
            _expect(hasher, wanted, place, name)


class _Content(io.RawIOBase):
    """Shows the bytes of one item as a file, without copying them."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._position = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._position = offset + (0, self._position, len(self._content))[whence]
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        into = memoryview(buffer)
        part = self._content[self._position : self._position + len(into)]
        into[: len(part)] = part
        self._position += len(part)
        return len(part)


def verify_items(folder: Path, index: Metadata) -> None:
    """Verify all items of a directory, one after the other. Raises DamagedError."""
    for item_index, place in (index.storage_data or {}).items():
        hasher = Hasher()
        with (folder / place.relative_path).open("rb") as file:
            file.seek(place.offset)
            hasher.update(file.read(place.length))
        _expect(hasher, getattr(place, _FIELD), place, item_index.fqn)


def _expect(hasher: Hasher, wanted: str, place: _StorageInfo, name: str) -> None:
    if hasher.hexdigest() != wanted:
        raise DamagedError(
            f"{place.relative_path} is damaged: {name}, {place.length} bytes from {place.offset} on, "
            f"has another hash"
        )


@contextmanager
def timed(seconds: Seconds, phase: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - began


def has_hashes(index: Metadata) -> bool:
    """Tell whether every item of the index has a hash, so that it can be verified."""
    places = index.storage_data or {}
    return bool(places) and all(hasattr(place, _FIELD) for place in places.values())
