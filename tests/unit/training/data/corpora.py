"""Small corpora on disk for tests."""

import array
from collections.abc import Sequence
from pathlib import Path

from training.data.index import ShardIndex, TokenDtype
from training.data.writer import ShardWriter, empty_corpus

_BLOCK_BYTES = 64
"""Small, so that a small corpus has several."""


def written(
    directory: Path,
    tokens: Sequence[int],
    *,
    shard_tokens: int = 100,
    vocabulary: int = 256,
    dtype: TokenDtype = TokenDtype.UINT16,
) -> ShardIndex:
    writer = ShardWriter(
        empty_corpus(directory),
        dtype=dtype,
        vocabulary=vocabulary,
        shard_tokens=shard_tokens,
        block_bytes=_BLOCK_BYTES,
    )
    writer.write(array.array("H" if dtype is TokenDtype.UINT16 else "I", tokens).tobytes())
    return writer.publish()


def spoil(path: Path, offset: int) -> None:
    """Another value in one byte."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
