"""Blocks side by side come by one request, and whatever goes wrong with it is read block by block."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.data.corpora import written
from training.data.blocks import BlockReader, DirectoryPlace, Range
from training.data.fetchers import MOST_BLOCKS, runs_of
from training.data.index import TokenDtype
from training.errors import DataError


@dataclass
class Streaming:
    """A directory behind requests: each is noted, and a stream ends after so many parts."""

    inner: DirectoryPlace
    ends_after: int = 99
    damaged: int = -1
    """Part of each stream that comes with other bytes."""
    requests: list[tuple[str, int, int]] = field(default_factory=list)
    title: str = "streams"

    def sizes(self) -> Mapping[str, int]:
        return self.inner.sizes()

    def read(self, name: str, offset: int, size: int) -> bytes:
        self.requests.append((name, offset, 1))
        return self.inner.read(name, offset, size)

    def stream(self, name: str, offset: int, sizes: Sequence[int]) -> Iterator[bytes]:
        self.requests.append((name, offset, len(sizes)))
        for number, size in enumerate(sizes[: self.ends_after]):
            part = self.inner.read(name, offset, size)
            yield b"?" * size if number == self.damaged else part
            offset += size


BLOCK, BLOCKS = 64, 100


def opened(folder: Path, **faults: Any) -> tuple[BlockReader, Streaming, bytes]:
    index = written(
        folder, range(BLOCK * BLOCKS // 2), shard_tokens=BLOCK * BLOCKS // 2, dtype=TokenDtype.UINT16
    )
    assert index.block_bytes == BLOCK
    place = Streaming(DirectoryPlace(folder, title="corpus"), **faults)
    reader = BlockReader(place, index.shards, block_bytes=BLOCK)
    return reader, place, (folder / "shard-00000.bin").read_bytes()


WHOLE = [Range(file=0, offset=block * BLOCK, size=BLOCK) for block in range(BLOCKS)]


def read(reader: BlockReader) -> bytes:
    reader.expect(WHOLE)
    return b"".join(map(reader.read, WHOLE))


def test_blocks_side_by_side_come_by_fewer_requests(tmp_path: Path) -> None:
    reader, place, content = opened(tmp_path)
    assert read(reader) == content
    assert sum(blocks for *_, blocks in place.requests) == BLOCKS
    assert len(place.requests) < BLOCKS / 5


@pytest.mark.parametrize("ends_after", [0, 1, 3])
def test_what_a_stream_leaves_out_is_read_block_by_block(tmp_path: Path, ends_after: int) -> None:
    reader, place, content = opened(tmp_path, ends_after=ends_after)
    assert read(reader) == content
    assert any(blocks == 1 for *_, blocks in place.requests)


def test_a_damaged_part_of_a_stream_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    reader, _, content = opened(tmp_path, damaged=1)
    reader.expect(WHOLE)
    assert reader.read(WHOLE[0]) == content[:BLOCK]
    with pytest.raises(DataError, match="damaged at byte 64"):
        reader.read(WHOLE[1])
    assert reader.read(WHOLE[2]) == content[2 * BLOCK : 3 * BLOCK]


def test_few_blocks_are_not_joined_so_that_each_thread_has_one() -> None:
    keys = [(0, block) for block in range(16)]
    assert runs_of(keys, threads=16) == [(key,) for key in keys]


def test_runs_have_a_bound_and_join_nothing_that_lies_apart() -> None:
    keys = [(0, block) for block in range(20)] + [(0, 30), (1, 31), (1, 32)]
    runs = runs_of(keys, threads=1)
    assert [key for run in runs for key in run] == keys
    assert [len(run) for run in runs] == [MOST_BLOCKS, MOST_BLOCKS, 4, 1, 2]


def test_the_run_that_is_needed_first_comes_first() -> None:
    assert runs_of([(1, 5), (0, 1), (0, 0), (1, 6)], threads=1) == [((1, 5), (1, 6)), ((0, 0), (0, 1))]
