"""What `index.json` says about the token shards beside it.

    {"version": 1, "dtype": "uint16", "vocabulary": 256, "block_bytes": 1048576,
     "shards": [{"name": "shard-00000.bin", "tokens": 70000, "bytes": 140000,
                 "sha256": "9f86d0...", "blocks": ["1c291ca3"],
                 "documents": {"name": "shard-00000.documents", "bytes": 8750, ...}}]}

A shard is its tokens one after the other, little-endian. Each block of it has a CRC-32 of its own, because
readers fetch blocks: a block is checked whenever it is read, and nobody reads a terabyte to check it before
the first step.

Two more files may lie beside a shard, each with one bit for every token, the first token's in the lowest bit
of the first byte: in `documents` it is set where a document begins, in `trained` where the loss of predicting
this token counts. Corpora without them are read as ever. One with `trained`, or packed, has version 2: a
program that does not know it must not train on prompts.
"""

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Self, TypeVar

from training.errors import DataError

_T = TypeVar("_T")
INDEX = "index.json"
PLAIN, MASKED = 1, 2
"""Versions: tokens alone count, or `trained` and `packed` must be understood."""
BLOCK_BYTES = 2**20
_TOKENS_A_BLOCK = 16
"""A block of bits is a 16th of one of tokens: for as many of them, if those are uint16."""


class TokenDtype(StrEnum):
    UINT16 = "uint16"
    UINT32 = "uint32"

    @property
    def bytes(self) -> int:
        """Of one token."""
        return 2 if self is TokenDtype.UINT16 else 4

    @classmethod
    def of(cls, vocabulary: int) -> Self:
        """The smallest that holds it."""
        return cls.UINT16 if vocabulary <= 2**16 else cls.UINT32


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFile:
    name: str
    bytes: int
    sha256: str
    """Of the whole file."""
    blocks: tuple[str, ...]
    """CRC-32 of each block, in hexadecimal; the last block may be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard(BlockFile):
    tokens: int
    documents: BlockFile | None = None
    """A bit for each token: a document begins with it."""
    trained: BlockFile | None = None
    """A bit for each token: its prediction is trained; None: every one is."""

    @property
    def files(self) -> "list[BlockFile]":
        return [self, *(one for one in (self.documents, self.trained) if one is not None)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIndex:
    dtype: TokenDtype
    vocabulary: int
    """Tokens are below this."""
    block_bytes: int
    shards: tuple[Shard, ...]
    packed: int | None = None
    """The sequence length into which whole documents were packed; None: one follows the other."""

    @property
    def identity(self) -> str:
        """The same for the same tokens in the same shards, trained alike."""
        told = "".join(
            shard.sha256 + (shard.trained.sha256 if shard.trained else "") for shard in self.shards
        )
        return sha256(told.encode()).hexdigest()[:16]

    @property
    def has_documents(self) -> bool:
        return all(shard.documents for shard in self.shards)

    @property
    def is_masked(self) -> bool:
        return any(shard.trained for shard in self.shards)

    def to_json(self) -> str:
        told = {
            "version": MASKED if self.is_masked or self.packed else PLAIN,
            "dtype": self.dtype,
            "vocabulary": self.vocabulary,
            "block_bytes": self.block_bytes,
            **({"packed": self.packed} if self.packed else {}),
            "shards": [_told(shard) for shard in self.shards],
        }
        return json.dumps(told, indent=1) + "\n"


def _told(shard: Shard) -> dict[str, Any]:
    told = {"name": shard.name, "tokens": shard.tokens, **asdict(shard)}
    return {name: value for name, value in told.items() if value is not None}


def bits_block_bytes(block_bytes: int) -> int:
    """Of the files with a bit for each token, where blocks of tokens have so many bytes."""
    return max(1, block_bytes // _TOKENS_A_BLOCK)


def checksum(block: bytes) -> str:
    return f"{zlib.crc32(block):08x}"


def parse_index(text: bytes, *, place: str) -> ShardIndex:
    """As ``parsed``."""
    remedy = "write the shards again with python -m tools.training.prepare"
    return parsed(text, _index, place=place, name=INDEX, remedy=remedy)


def parsed(text: bytes, read: Callable[[Any], _T], *, place: str, name: str, remedy: str) -> _T:
    """What ``read`` makes of an index; ``place`` is where it lies, for the message.

    Raises:
        DataError: It is not an index of ours, or contradicts itself.
    """
    try:
        return read(json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(place=place, problem=f"{name} cannot be read: {problem}", remedy=remedy) from error


def _index(document: Any) -> ShardIndex:  # noqa: ANN401  what JSON is
    if document["version"] not in {PLAIN, MASKED}:
        raise ValueError(f"version {document['version']!r}, this program reads {PLAIN} and {MASKED}")
    index = ShardIndex(
        dtype=TokenDtype(document["dtype"]),
        vocabulary=int(document["vocabulary"]),
        block_bytes=int(document["block_bytes"]),
        shards=tuple(_shard(one) for one in document["shards"]),
        packed=int(document["packed"]) if "packed" in document else None,
    )
    if problems := _contradictions(index):
        raise ValueError(problems[0])
    return index


def _shard(document: Any) -> Shard:  # noqa: ANN401
    return Shard(
        tokens=int(document["tokens"]),
        documents=_file(document.get("documents")),
        trained=_file(document.get("trained")),
        **_fields(document),
    )


def _file(document: Any) -> BlockFile | None:  # noqa: ANN401
    return None if document is None else BlockFile(**_fields(document))


def _fields(document: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "name": str(document["name"]),
        "bytes": int(document["bytes"]),
        "sha256": str(document["sha256"]),
        "blocks": tuple(str(one) for one in document["blocks"]),
    }


def _contradictions(index: ShardIndex) -> list[str]:
    if index.block_bytes < index.dtype.bytes or index.block_bytes % index.dtype.bytes:
        return [f"block_bytes {index.block_bytes} holds no whole number of tokens"]
    found = [] if index.shards else ["it lists no shards"]
    for shard in index.shards:
        if shard.bytes != shard.tokens * index.dtype.bytes:
            found.append(f"{shard.name} has {shard.tokens} tokens of {index.dtype} in {shard.bytes} bytes")
        found += _contradictions_of(shard, index.block_bytes)
        for one in shard.files[1:]:
            if one.bytes != -(-shard.tokens // 8):
                found.append(f"{one.name} has {one.bytes} bytes, not a bit for each of {shard.tokens} tokens")
            found += _contradictions_of(one, bits_block_bytes(index.block_bytes))
    if index.packed is not None and (index.packed < 1 or not index.has_documents or not index.is_masked):
        found.append(f"it is packed for sequences of {index.packed} tokens and lacks documents or masks")
    return found


def _contradictions_of(one: BlockFile, block_bytes: int) -> list[str]:
    found = []
    if PurePosixPath(one.name).name != one.name:
        found.append(f"shard {one.name!r} is not in the folder of the index")
    if len(one.blocks) != -(-one.bytes // block_bytes):
        found.append(f"{one.name} has checksums of {len(one.blocks)} blocks")
    return found
