"""Small corpora on disk for tests."""

import array
from collections.abc import Sequence
from pathlib import Path

from tools.training.writer import Layout, Part, ShardWriter, empty_corpus
from training.data.index import ShardIndex, TokenDtype

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
    layout = Layout(dtype=dtype, vocabulary=vocabulary, shard_tokens=shard_tokens, block_bytes=_BLOCK_BYTES)
    writer = ShardWriter(empty_corpus(directory), layout)
    writer.write(Part(tokens=array.array("H" if dtype is TokenDtype.UINT16 else "I", tokens).tobytes()))
    return writer.publish()


def written_documents(
    directory: Path,
    documents: Sequence[tuple[Sequence[int], str]],
    *,
    shard_tokens: int = 100,
    packed: int | None = None,
) -> ShardIndex:
    """Of each document the tokens, and for each token 1 or 0: whether it is trained."""
    layout = Layout(
        dtype=TokenDtype.UINT16,
        vocabulary=256,
        shard_tokens=shard_tokens,
        documents=True,
        masked=True,
        packed=packed,
        pad=255,
        block_bytes=_BLOCK_BYTES,
    )
    writer = ShardWriter(empty_corpus(directory), layout)
    for tokens, trained in documents:
        flags = bytes(int(one) for one in trained)
        writer.write(Part(tokens=array.array("H", tokens).tobytes(), begins=True, trained=flags))
    return writer.publish()


def spoil(path: Path, offset: int) -> None:
    """Another value in one byte."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
