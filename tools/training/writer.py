"""Writes token shards: as a stream, each block with its checksum, the index last.

A crash leaves shards without an index, which are never read, and which the next run removes.
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from training.data.index import (
    BLOCK_BYTES,
    INDEX,
    BlockFile,
    Shard,
    ShardIndex,
    TokenDtype,
    bits_block_bytes,
    checksum,
)
from training.errors import DataError

_NAME = "shard-{:05d}"
_OURS = "shard-*"
_DRAFT = f".{INDEX}"
_DIGITS = bytes.maketrans(b"\0\1", b"01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some tokens of one document."""

    tokens: bytes | memoryview
    """Whole tokens, little-endian."""
    begins: bool = False
    """True if a document begins with the first of them."""
    trained: bytes | None = None
    """A byte for each token: 1 where its prediction is trained, else 0; None for 1 everywhere."""

    def cut(self, tokens: int, width: int) -> "tuple[Part, Part]":
        """Split off the first so many tokens of ``width`` bytes each; return them and the rest."""
        view = memoryview(self.tokens)
        flags = (None, None) if self.trained is None else (self.trained[:tokens], self.trained[tokens:])
        first = Part(tokens=view[: tokens * width], begins=self.begins, trained=flags[0])
        return first, Part(tokens=view[tokens * width :], trained=flags[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The options that all shards of a corpus have in common."""

    dtype: TokenDtype
    vocabulary: int
    shard_tokens: int
    documents: bool = False
    """True if the shards say where documents begin."""
    masked: bool = False
    """True if the shards say which tokens are trained."""
    packed: int | None = None
    """Tokens of each sequence that documents are packed into, whole sequences to a shard; None if not
    packed."""
    pad: int = 0
    """The token after the last sequence of a packed shard: a sequence needs the token after its last."""
    block_bytes: int = BLOCK_BYTES


def empty_corpus(directory: Path) -> Path:
    """Make the directory, remove what a run that died left in it, and return it.

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
    """Cuts a stream of tokens into shards; the last one may be shorter."""

    def __init__(self, directory: Path, layout: Layout) -> None:
        self.directory, self._layout = directory, layout
        packed = layout.packed or 1
        self._shard_tokens = max(1, layout.shard_tokens // packed) * packed
        self._done: list[Shard] = []
        self._open: _OpenShard | None = None

    def write(self, part: Part) -> None:
        width = self._layout.dtype.bytes
        while part.tokens:
            if self._open is None:
                self._open = _OpenShard(self.directory / _NAME.format(len(self._done)), self._layout)
            now, part = part.cut(self._shard_tokens - self._open.tokens, width)
            self._open.append(now)
            if self._open.tokens == self._shard_tokens:
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
            dtype=self._layout.dtype,
            vocabulary=self._layout.vocabulary,
            block_bytes=self._layout.block_bytes,
            shards=tuple(self._done),
            packed=self._layout.packed,
        )
        with (self.directory / _DRAFT).open("w") as file:
            file.write(index.to_json())
            file.flush()
            os.fsync(file.fileno())
        (self.directory / _DRAFT).rename(self.directory / INDEX)
        return index

    def _close_shard(self) -> None:
        assert self._open is not None
        if self._layout.packed:
            pad = self._layout.pad.to_bytes(self._layout.dtype.bytes, "little")
            self._open.append(Part(tokens=pad, begins=True, trained=b"\0"))
        self._done.append(self._open.closed())
        self._open = None


class _OpenShard:
    def __init__(self, stem: Path, layout: Layout) -> None:
        bits = bits_block_bytes(layout.block_bytes)
        self.tokens, self._width = 0, layout.dtype.bytes
        self._file = _OpenFile(path=stem.with_suffix(".bin"), block_bytes=layout.block_bytes)
        self._documents = _OpenBits(stem.with_suffix(".documents"), bits) if layout.documents else None
        self._trained = _OpenBits(stem.with_suffix(".trained"), bits) if layout.masked else None

    def append(self, part: Part) -> None:
        tokens = len(part.tokens) // self._width
        self.tokens += tokens
        self._file.append(part.tokens)
        if self._documents is not None:
            self._documents.append(bytes([part.begins]) + bytes(tokens - 1))
        if self._trained is not None:
            self._trained.append(b"\1" * tokens if part.trained is None else part.trained)

    def closed(self) -> Shard:
        written = self._file.closed()
        return Shard(
            tokens=self.tokens,
            name=written.name,
            bytes=written.bytes,
            sha256=written.sha256,
            blocks=written.blocks,
            documents=self._documents.closed() if self._documents else None,
            trained=self._trained.closed_unless_all_set() if self._trained else None,
        )


class _OpenBits:
    """A file of bits, given as bytes of 0 and 1."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        self._file, self._pending = _OpenFile(path=path, block_bytes=block_bytes), bytearray()
        self._all_set = True

    def append(self, flags: bytes) -> None:
        self._all_set &= 0 not in flags
        self._pending += flags
        whole = len(self._pending) // 8 * 8
        self._file.append(_bits(self._pending[:whole]))
        del self._pending[:whole]

    def closed(self) -> BlockFile:
        self._file.append(_bits(self._pending))
        return self._file.closed()

    def closed_unless_all_set(self) -> BlockFile | None:
        """Finish the file; if all bits are set, remove it and return None, as readers assume that then."""
        if not self._all_set:
            return self.closed()
        self._file.path.unlink()
        return None


def _bits(flags: bytes | bytearray) -> bytes:
    """Pack eight flags to a byte, the first in the lowest bit: they are one binary number, read backwards."""
    return int(flags[::-1].translate(_DIGITS) or b"0", 2).to_bytes(-(-len(flags) // 8), "little")


@dataclass(slots=True, kw_only=True)
class _OpenFile:
    path: Path
    block_bytes: int
    _pending: bytearray = field(default_factory=bytearray)
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _blocks: list[str] = field(default_factory=list)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self.path.write_bytes(b"")

    def append(self, data: bytes | memoryview) -> None:
        self._bytes += len(data)
        self._pending += data
        whole = len(self._pending) // self.block_bytes * self.block_bytes
        for start in range(0, whole, self.block_bytes):
            self._write_block(bytes(self._pending[start : start + self.block_bytes]))
        del self._pending[:whole]

    def closed(self) -> BlockFile:
        if self._pending:
            self._write_block(bytes(self._pending))
        with self.path.open("ab") as file:
            os.fsync(file.fileno())
        return BlockFile(
            name=self.path.name,
            bytes=self._bytes,
            sha256=self._hash.hexdigest(),
            blocks=tuple(self._blocks),
        )

    def _write_block(self, block: bytes) -> None:
        self._hash.update(block)
        self._blocks.append(checksum(block))
        # Opened for each block, so that no file stays open when the input turns out to be unusable.
        with self.path.open("ab") as file:
            file.write(block)
