"""Token shards as a corpus: opened and checked without reading tokens, then read by sequence."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from training.config.sections import SampleOptions
from training.data.blocks import CACHE_BYTES, BlockReader, DirectoryPlace, Place, Range
from training.data.index import INDEX, BlockFile, ShardIndex, TokenDtype, bits_block_bytes, parse_index
from training.errors import DataError, listed

_SHOWN = 3
"""Names in a message; a failure file has room for 1,024 characters."""
_BITS_SHARE = 16
"""Least ratio of the memory of tokens to that of their bits; blocks of both hold about as many tokens."""
_DTYPES = {TokenDtype.UINT16: torch.uint16, TokenDtype.UINT32: torch.uint32}


def open_shards(place: Place, config: SampleOptions, *, at_least: int) -> "TokenShards":
    sizes = place.sizes()
    if INDEX not in sizes:
        raise DataError(place=place.title, problem=f"there is no {INDEX}", remedy=_remedy(place))
    index = parse_index(place.read(INDEX, 0, sizes[INDEX]), place=place.title)
    _check_files(place, index, sizes)
    _check_fit(place, index, config)
    corpus = TokenShards(place, index, sequence_length=config.shape.sequence_length)
    if corpus.sequences < at_least:
        raise DataError(
            place=place.title,
            problem=f"it has {corpus.sequences} sequences of {config.shape.sequence_length} tokens, "
            f"a step needs batch_size {at_least}",
            remedy="lower batch_size or sequence_length, or prepare more data",
        )
    return corpus


def _check_files(place: Place, index: ShardIndex, sizes: Mapping[str, int]) -> None:
    wanted = {file.name: file.bytes for shard in index.shards for file in shard.files}
    if missing := sorted(wanted.keys() - sizes.keys()):
        raise DataError(
            place=place.title,
            problem=f"{len(missing)} of {len(wanted)} shards are missing: {listed(missing, most=_SHOWN)}",
            remedy=_remedy(place),
        )
    wrong = [
        f"{name} has {sizes[name]} bytes of {size}" for name, size in wanted.items() if sizes[name] != size
    ]
    if wrong:
        shown = listed(wrong, most=_SHOWN)
        raise DataError(
            place=place.title,
            problem=f"{len(wrong)} of {len(wanted)} shards do not have their size: {shown}",
            remedy="copy them again from where they were prepared",
        )


def _check_fit(place: Place, index: ShardIndex, config: SampleOptions) -> None:
    shape = config.text_shape
    if index.vocabulary > shape.vocabulary:
        raise DataError(
            place=place.title,
            problem=f"its vocabulary of {index.vocabulary} tokens is larger than the {shape.vocabulary} "
            f"of the model ({config.model_name})",
            remedy="choose a model with that vocabulary, or prepare the data with the model's tokenizer",
        )
    if index.packed is not None and index.packed != shape.sequence_length:
        raise DataError(
            place=place.title,
            problem=f"it is packed into sequences of {index.packed} tokens, sequence_length is "
            f"{shape.sequence_length}",
            remedy=f"set sequence_length {index.packed}, or prepare it again with --pack",
        )
    if config.document_mask and not index.has_documents:
        raise DataError(
            place=place.title,
            problem="it does not say where documents begin, which document_mask needs",
            remedy="prepare it again from texts or JSON lines, or leave document_mask out",
        )
    longest = max(shard.tokens for shard in index.shards)
    if longest <= shape.sequence_length:
        raise DataError(
            place=place.title,
            problem=f"no shard holds a sequence of {shape.sequence_length} tokens and the one that "
            f"follows: the longest has {longest}",
            remedy="lower sequence_length, or prepare it with larger --shard-tokens",
        )


def _remedy(place: Place) -> str:
    if isinstance(place, DirectoryPlace):
        return (
            "give the whole folder that python -m tools.training.prepare wrote; a channel needs "
            "S3DataDistributionType FullyReplicated (ShardedByS3Key gives each host a part of the files) "
            "and InputMode FastFile or File"
        )
    return "upload the whole folder that python -m tools.training.prepare wrote"


class TokenShards:
    """Corpus of shards: sequence i of a shard begins at its token ``i * sequence_length``.

    A sequence has one token more than ``sequence_length``, the target of its last input, so neighbours share
    a token. The rest at the end of a shard, less than one sequence, is never seen.
    """

    def __init__(self, place: Place, index: ShardIndex, *, sequence_length: int) -> None:
        self._place, self._index, self._length = place, index, sequence_length
        self.vocabulary, self.is_masked, self.identity = index.vocabulary, index.is_masked, index.identity
        counts = (max(0, shard.tokens - 1) // sequence_length for shard in index.shards)
        self._ends = list(accumulate(counts))
        self.sequences = self._ends[-1]
        self._blocks = BlockReader(place, index.shards, block_bytes=index.block_bytes)
        self._begins = self._bits("documents")
        self._trained = self._bits("trained")

    def _bits(self, name: str) -> "_Bits | None":
        """Open the files of this kind; None if no shard has one."""
        files = [getattr(shard, name) for shard in self._index.shards]
        if not any(files):
            return None
        return _Bits(self._place, files, block_bytes=bits_block_bytes(self._index.block_bytes))

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        assert length <= self._length + 1
        ranges = [self._range(number, length) for number in numbers]
        self._blocks.expect(ranges)
        return torch.stack([self._tokens(span) for span in ranges])

    def begins(self, numbers: Sequence[int], length: int) -> Tensor | None:
        return self._rows_of(self._begins, numbers, length)

    def trained(self, numbers: Sequence[int], length: int) -> Tensor | None:
        return self._rows_of(self._trained, numbers, length)

    def _rows_of(self, bits: "_Bits | None", numbers: Sequence[int], length: int) -> Tensor | None:
        return bits.rows([self._place_of(number) for number in numbers], length) if bits else None

    def _range(self, number: int, length: int) -> Range:
        shard, first = self._place_of(number)
        size = self._index.dtype.bytes
        return Range(file=shard, offset=first * size, size=length * size)

    def _place_of(self, number: int) -> tuple[int, int]:
        """Return the shard of a sequence, and its first token there."""
        shard = bisect_right(self._ends, number)
        return shard, (number - (self._ends[shard - 1] if shard else 0)) * self._length

    def _tokens(self, span: Range) -> Tensor:
        data = bytearray(self._blocks.read(span))
        tokens = torch.frombuffer(data, dtype=_DTYPES[self._index.dtype]).to(torch.int64)
        largest = int(tokens.max())
        if largest >= self._index.vocabulary:
            name = self._index.shards[span.file].name
            raise DataError(
                place=self._place.title,
                problem=f"{name} has token {largest} behind byte {span.offset}, "
                f"its vocabulary ends at {self._index.vocabulary - 1}",
                remedy="prepare the shards again with the --vocabulary of their tokenizer",
            )
        return tokens


class _Bits:
    """Files with a bit for each token beside each shard; every bit counts as set where there is no file."""

    def __init__(self, place: Place, files: Sequence[BlockFile | None], *, block_bytes: int) -> None:
        there = [file for file in files if file is not None]
        self._numbers = {shard: there.index(file) for shard, file in enumerate(files) if file is not None}
        self._blocks = BlockReader(
            place, there, block_bytes=block_bytes, cache_bytes=2 * CACHE_BYTES // _BITS_SHARE
        )

    def rows(self, places: Sequence[tuple[int, int]], length: int) -> Tensor:
        """Return the bits of tokens: bool of shape (places, length)."""
        ranges = [self._range(shard, first, length) for shard, first in places]
        self._blocks.expect([span for span in ranges if span is not None])
        rows = [self._row(span, first % 8, length) for span, (_, first) in zip(ranges, places, strict=True)]
        return torch.stack(rows)

    def _range(self, shard: int, first: int, length: int) -> Range | None:
        if shard not in self._numbers:
            return None
        begins = first // 8
        return Range(file=self._numbers[shard], offset=begins, size=-(-(first + length) // 8) - begins)

    def _row(self, span: Range | None, skipped: int, length: int) -> Tensor:
        if span is None:
            return torch.ones(length, dtype=torch.bool)
        data = torch.frombuffer(bytearray(self._blocks.read(span)), dtype=torch.uint8)
        bits = data.unsqueeze(1) >> torch.arange(8, dtype=torch.uint8) & 1
        return bits.flatten()[skipped : skipped + length].bool()
