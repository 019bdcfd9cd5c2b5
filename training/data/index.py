"""Index of the token shards in a folder: `index.json`, which lies beside them.

    {"version": 1, "dtype": "uint16", "vocabulary": 256, "block_bytes": 1048576,
     "shards": [{"name": "shard-00000.bin", "tokens": 70000, "bytes": 140000,
                 "sha256": "9f86d0...", "blocks": ["1c291ca3"],
                 "documents": {"name": "shard-00000.documents", "bytes": 8750, ...}}]}

A shard is its tokens one after the other, little-endian. Each block of it has a CRC-32 of its own, because
readers fetch blocks: a block is checked whenever it is read, and nobody reads a terabyte to check it before
the first step.

Two more files may lie beside a shard, each with one bit for every token, the first token's in the lowest bit
of the first byte: in `documents` it is set where a document begins, in `trained` where the loss of predicting
this token counts. Corpora without these files are read as before. One with `trained`, or packed, has version
2: a program that does not know these must not train on prompts.
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
"""Versions of an index: tokens alone count, or `trained` and `packed` must be understood."""
BLOCK_BYTES = 2**20
_TOKENS_A_BLOCK = 16
"""Number of times that a block of bits is smaller than one of tokens: it has as many of them, if uint16."""


class TokenDtype(StrEnum):
    UINT16 = "uint16"
    UINT32 = "uint32"

    @property
    def bytes(self) -> int:
        """Return the bytes of one token."""
        return 2 if self is TokenDtype.UINT16 else 4

    @classmethod
    def of(cls, vocabulary: int) -> Self:
        """Return the smallest type that holds all tokens of a vocabulary."""
        return cls.UINT16 if vocabulary <= 2**16 else cls.UINT32


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFile:
    name: str
    bytes: int
    sha256: str
    """Digest of the whole file."""
    blocks: tuple[str, ...]
    """CRC-32 of each block, in hexadecimal; the last block may be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard(BlockFile):
    tokens: int
    documents: BlockFile | None = None
    """File with a bit for each token: whether a document begins with it."""
    trained: BlockFile | None = None
    """File with a bit for each token: whether its prediction is trained; None: all are."""

    @property
    def files(self) -> "list[BlockFile]":
        return [self, *(file for file in (self.documents, self.trained) if file is not None)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIndex:
    dtype: TokenDtype
    vocabulary: int
    """Number of different tokens; each token is below it."""
    block_bytes: int
    shards: tuple[Shard, ...]
    packed: int | None = None
    """Sequence length into which whole documents were packed; None: documents follow each other."""

    @property
    def identity(self) -> str:
        """Digest that is the same for the same tokens in the same shards, trained alike."""
        digests = "".join(
            shard.sha256 + (shard.trained.sha256 if shard.trained else "") for shard in self.shards
        )
        return sha256(digests.encode()).hexdigest()[:16]

    @property
    def has_documents(self) -> bool:
        return all(shard.documents for shard in self.shards)

    @property
    def is_masked(self) -> bool:
        return any(shard.trained for shard in self.shards)

    def to_json(self) -> str:
        document = {
            "version": MASKED if self.is_masked or self.packed else PLAIN,
            "dtype": self.dtype,
            "vocabulary": self.vocabulary,
            "block_bytes": self.block_bytes,
            **({"packed": self.packed} if self.packed else {}),
            "shards": [_shard_json(shard) for shard in self.shards],
        }
        return json.dumps(document, indent=1) + "\n"


def _shard_json(shard: Shard) -> dict[str, Any]:
    document = {"name": shard.name, "tokens": shard.tokens, **asdict(shard)}
    return {name: value for name, value in document.items() if value is not None}


def bits_block_bytes(block_bytes: int) -> int:
    """Return the bytes of a block of bits, where a block of tokens has ``block_bytes``."""
    return max(1, block_bytes // _TOKENS_A_BLOCK)


def checksum(block: bytes) -> str:
    return f"{zlib.crc32(block):08x}"


def parse_index(text: bytes, *, place: str) -> ShardIndex:
    """Read an index. Raises like ``parsed``."""
    remedy = "write the shards again with python -m tools.training.prepare"
    return parsed(text, _index, place=place, name=INDEX, remedy=remedy)


def parsed(text: bytes, read: Callable[[Any], _T], *, place: str, name: str, remedy: str) -> _T:
    """Read the JSON of an index.

    Args:
        text: Content of the file.
        read: Function that makes the index of the JSON, and raises ValueError or the like if it cannot.
        place: Name of the folder that it is in, for messages.
        name: Name of the file.
        remedy: Advice in the message.

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
        shards=tuple(_shard(shard) for shard in document["shards"]),
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
        "blocks": tuple(str(block) for block in document["blocks"]),
    }


def _contradictions(index: ShardIndex) -> list[str]:
    if index.block_bytes < index.dtype.bytes or index.block_bytes % index.dtype.bytes:
        return [f"block_bytes {index.block_bytes} holds no whole number of tokens"]
    problems = [] if index.shards else ["it lists no shards"]
    for shard in index.shards:
        if shard.bytes != shard.tokens * index.dtype.bytes:
            problems.append(f"{shard.name} has {shard.tokens} tokens of {index.dtype} in {shard.bytes} bytes")
        problems += _contradictions_of(shard, index.block_bytes)
        for file in shard.files[1:]:
            if file.bytes != -(-shard.tokens // 8):
                problems.append(
                    f"{file.name} has {file.bytes} bytes, not a bit for each of {shard.tokens} tokens"
                )
            problems += _contradictions_of(file, bits_block_bytes(index.block_bytes))
    if index.packed is not None and (index.packed < 1 or not index.has_documents or not index.is_masked):
        problems.append(f"it is packed for sequences of {index.packed} tokens and lacks documents or masks")
    return problems


def _contradictions_of(file: BlockFile, block_bytes: int) -> list[str]:
    problems = []
    if PurePosixPath(file.name).name != file.name:
        problems.append(f"shard {file.name!r} is not in the folder of the index")
    if len(file.blocks) != -(-file.bytes // block_bytes):
        problems.append(f"{file.name} has checksums of {len(file.blocks)} blocks")
    return problems
