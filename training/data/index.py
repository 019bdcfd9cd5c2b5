"""What `index.json` says about the token shards beside it.

    {"version": 1, "dtype": "uint16", "vocabulary": 256, "block_bytes": 1048576,
     "shards": [{"name": "shard-00000.bin", "tokens": 70000, "bytes": 140000,
                 "sha256": "9f86d0...", "blocks": ["1c291ca3"]}]}

A shard is its tokens one after the other, little-endian. Each block of it has a CRC-32 of its own, because
readers fetch blocks: a block is checked whenever it is read, and nobody reads a terabyte to check it before
the first step.
"""

import json
import zlib
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from training.errors import DataError

INDEX = "index.json"
VERSION = 1
BLOCK_BYTES = 2**20


class TokenDtype(StrEnum):
    UINT16 = "uint16"
    UINT32 = "uint32"

    @property
    def bytes(self) -> int:
        """Of one token."""
        return 2 if self is TokenDtype.UINT16 else 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    name: str
    tokens: int
    bytes: int
    sha256: str
    """Of the whole file."""
    blocks: tuple[str, ...]
    """CRC-32 of each block, in hexadecimal; the last block may be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIndex:
    dtype: TokenDtype
    vocabulary: int
    """Tokens are below this."""
    block_bytes: int
    shards: tuple[Shard, ...]

    @property
    def identity(self) -> str:
        """The same for the same tokens in the same shards."""
        told = "".join(shard.sha256 for shard in self.shards)
        return sha256(told.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n"


def checksum(block: bytes) -> str:
    return f"{zlib.crc32(block):08x}"


def parse_index(text: bytes, *, place: str) -> ShardIndex:
    """Read an index; ``place`` is where it lies, for the message.

    Raises:
        DataError: It is not an index of ours, or contradicts itself.
    """
    try:
        index = _index(json.loads(text))
    except KeyError as error:
        raise _unreadable(place, f"it has no {error}") from error
    except (TypeError, ValueError) as error:
        raise _unreadable(place, str(error)) from error
    if problems := _contradictions(index):
        raise _unreadable(place, problems[0])
    return index


def _index(document: Any) -> ShardIndex:  # noqa: ANN401  what JSON is
    if document["version"] != VERSION:
        raise ValueError(f"version {document['version']!r}, this program reads {VERSION}")
    return ShardIndex(
        dtype=TokenDtype(document["dtype"]),
        vocabulary=int(document["vocabulary"]),
        block_bytes=int(document["block_bytes"]),
        shards=tuple(_shard(one) for one in document["shards"]),
    )


def _shard(document: Any) -> Shard:  # noqa: ANN401
    return Shard(
        name=str(document["name"]),
        tokens=int(document["tokens"]),
        bytes=int(document["bytes"]),
        sha256=str(document["sha256"]),
        blocks=tuple(str(one) for one in document["blocks"]),
    )


def _contradictions(index: ShardIndex) -> list[str]:
    found = []
    if index.block_bytes < index.dtype.bytes or index.block_bytes % index.dtype.bytes:
        found.append(f"block_bytes {index.block_bytes} holds no whole number of tokens")
        return found
    if not index.shards:
        found.append("it lists no shards")
    for shard in index.shards:
        if PurePosixPath(shard.name).name != shard.name:
            found.append(f"shard {shard.name!r} is not in the folder of the index")
        if shard.bytes != shard.tokens * index.dtype.bytes:
            found.append(f"{shard.name} has {shard.tokens} tokens of {index.dtype} in {shard.bytes} bytes")
        if len(shard.blocks) != -(-shard.bytes // index.block_bytes):
            found.append(f"{shard.name} has checksums of {len(shard.blocks)} blocks")
    return found


def _unreadable(place: str, problem: str) -> DataError:
    return DataError(
        place=place,
        problem=f"{INDEX} cannot be read: {problem}",
        remedy="write the shards again with python -m training.prepare",
    )
