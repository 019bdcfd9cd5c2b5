"""Writes token shards: as a stream, each block with its checksum, the index last.

A crash leaves shards without an index, which nobody reads and the next run removes.
"""

import os
from hashlib import sha256
from pathlib import Path

from training.data.index import BLOCK_BYTES, INDEX, Shard, ShardIndex, TokenDtype, checksum
from training.errors import DataError

_NAME = "shard-{:05d}.bin"
_OURS = "shard-*.bin"
_DRAFT = f".{INDEX}"


def empty_corpus(directory: Path) -> Path:
    """The directory, made and without what a run that died left in it.

    Raises:
        DataError: There is something else in it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    there = {path.name for path in directory.iterdir()}
    ours = {path.name for path in directory.glob(_OURS)} | {_DRAFT}
    if there - ours:
        what = "a corpus" if INDEX in there else min(there - ours)
        raise DataError(
            place=str(directory),
            problem=f"there is already {what} in it, and nothing is overwritten",
            remedy="give an --output that is empty or not there yet",
        )
    for name in there:
        (directory / name).unlink()
    return directory


class ShardWriter:
    """Cuts a stream of tokens into shards of ``shard_tokens``; the last one may be shorter."""

    def __init__(
        self,
        directory: Path,
        *,
        dtype: TokenDtype,
        vocabulary: int,
        shard_tokens: int,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.directory, self._dtype, self._vocabulary = directory, dtype, vocabulary
        self._shard_bytes, self._block_bytes = shard_tokens * dtype.bytes, block_bytes
        self._done: list[Shard] = []
        self._open: _OpenShard | None = None

    def write(self, data: bytes | memoryview) -> None:
        """Append whole tokens, little-endian."""
        rest = memoryview(data)
        while rest:
            if self._open is None:
                path = self.directory / _NAME.format(len(self._done))
                self._open = _OpenShard(path, self._block_bytes)
            part = rest[: self._shard_bytes - self._open.bytes]
            self._open.append(part)
            rest = rest[len(part) :]
            if self._open.bytes == self._shard_bytes:
                self._close_shard()

    def publish(self) -> ShardIndex:
        """Write the index; only now is there a corpus.

        Raises:
            DataError: Nothing was written.
        """
        if self._open is not None:
            self._close_shard()
        if not self._done:
            raise DataError(
                place=str(self.directory),
                problem="the input has no tokens for it",
                remedy="give more --input, or a larger --validation-share",
            )
        index = ShardIndex(
            dtype=self._dtype,
            vocabulary=self._vocabulary,
            block_bytes=self._block_bytes,
            shards=tuple(self._done),
        )
        with (self.directory / _DRAFT).open("w") as file:
            file.write(index.to_json())
            file.flush()
            os.fsync(file.fileno())
        (self.directory / _DRAFT).rename(self.directory / INDEX)
        return index

    def _close_shard(self) -> None:
        assert self._open is not None
        self._done.append(self._open.closed(self._dtype))
        self._open = None


class _OpenShard:
    def __init__(self, path: Path, block_bytes: int) -> None:
        self._path = path
        path.write_bytes(b"")
        self._block_bytes, self._pending = block_bytes, bytearray()
        self._hash, self._blocks = sha256(), list[str]()
        self.bytes = 0

    def append(self, data: memoryview) -> None:
        self.bytes += len(data)
        self._pending += data
        whole = len(self._pending) // self._block_bytes * self._block_bytes
        for start in range(0, whole, self._block_bytes):
            self._write_block(bytes(self._pending[start : start + self._block_bytes]))
        del self._pending[:whole]

    def closed(self, dtype: TokenDtype) -> Shard:
        if self._pending:
            self._write_block(bytes(self._pending))
        with self._path.open("ab") as file:
            os.fsync(file.fileno())
        return Shard(
            name=self._path.name,
            tokens=self.bytes // dtype.bytes,
            bytes=self.bytes,
            sha256=self._hash.hexdigest(),
            blocks=tuple(self._blocks),
        )

    def _write_block(self, block: bytes) -> None:
        self._hash.update(block)
        self._blocks.append(checksum(block))
        # Opened for each block, so that no file stays open when the input turns out to be unusable.
        with self._path.open("ab") as file:
            file.write(block)
