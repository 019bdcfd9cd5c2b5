"""A corpus of token shards: sequences by number, cut from each shard in turn."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from training.data.blocks import BlockReader, Range
from training.data.places import Place
from training.errors import DataError
from training.shards.index import ShardIndex, TokenDtype

_DTYPES = {TokenDtype.UINT16: torch.uint16, TokenDtype.UINT32: torch.uint32}


class TokenShards:
    """Sequence i of a shard begins at its token ``i * sequence_length``.

    It has one token more than ``sequence_length``, the target of its last input, so neighbours share a
    token. What is left at the end of a shard is never seen: less than one sequence.
    """

    def __init__(self, place: Place, index: ShardIndex, *, sequence_length: int) -> None:
        self._place, self._index, self._length = place, index, sequence_length
        counts = (max(0, shard.tokens - 1) // sequence_length for shard in index.shards)
        self._ends = list(accumulate(counts))
        self._blocks = BlockReader(place, index)

    @property
    def vocabulary(self) -> int:
        return self._index.vocabulary

    @property
    def sequences(self) -> int:
        return self._ends[-1]

    @property
    def identity(self) -> str:
        return self._index.identity

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        assert length <= self._length + 1
        ranges = [self._range(number, length) for number in numbers]
        self._blocks.expect(ranges)
        return torch.stack([self._tokens(one) for one in ranges])

    def _range(self, number: int, length: int) -> Range:
        shard = bisect_right(self._ends, number)
        first = (number - (self._ends[shard - 1] if shard else 0)) * self._length
        size = self._index.dtype.bytes
        return Range(shard=shard, offset=first * size, size=length * size)

    def _tokens(self, one: Range) -> Tensor:
        data = bytearray(self._blocks.read(one))
        tokens = torch.frombuffer(data, dtype=_DTYPES[self._index.dtype]).to(torch.int64)
        largest = int(tokens.max())
        if largest >= self._index.vocabulary:
            name = self._index.shards[one.shard].name
            raise DataError(
                place=self._place.told,
                problem=f"{name} has token {largest} behind byte {one.offset}, "
                f"its vocabulary ends at {self._index.vocabulary - 1}",
                remedy="prepare the shards again with the --vocabulary of their tokenizer",
            )
        return tokens
