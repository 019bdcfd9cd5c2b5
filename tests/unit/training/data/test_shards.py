import gc
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.training.data.corpora import spoil, written
from training.data.blocks import BlockReader, DirectoryPlace, Range
from training.data.fetchers import Fetchers
from training.data.index import ShardIndex, TokenDtype
from training.data.token_shards import TokenShards
from training.errors import DataError


@dataclass(frozen=True)
class Counting:
    """A place that counts its reads."""

    inner: DirectoryPlace
    reads: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        return self.inner.title

    def sizes(self) -> Mapping[str, int]:
        return self.inner.sizes()

    def read(self, name: str, offset: int, size: int) -> bytes:
        self.reads[name, offset] += 1
        return self.inner.read(name, offset, size)


def _place(directory: Path) -> DirectoryPlace:
    return DirectoryPlace(directory, title="corpus")


def _corpus(directory: Path, index: ShardIndex, *, length: int) -> TokenShards:
    return TokenShards(_place(directory), index, sequence_length=length)


@pytest.mark.parametrize("dtype", list(TokenDtype))
def test_a_sequence_begins_where_the_one_before_has_its_last_target(
    tmp_path: Path, dtype: TokenDtype
) -> None:
    index = written(tmp_path, range(100), shard_tokens=50, dtype=dtype)
    corpus = _corpus(tmp_path, index, length=20)
    assert corpus.sequences == 4  # two a shard: 50 tokens are 2 * 20, a last target, and 9 left over
    assert corpus.rows([0, 1, 2, 3], 21).tolist() == [
        list(range(21)),
        list(range(20, 41)),
        list(range(50, 71)),
        list(range(70, 91)),
    ]


def test_a_shard_of_exactly_its_sequences_and_a_target_leaves_nothing(tmp_path: Path) -> None:
    index = written(tmp_path, range(82), shard_tokens=41)
    corpus = _corpus(tmp_path, index, length=20)
    assert corpus.sequences == 4
    assert corpus.rows([3], 21).tolist() == [list(range(61, 82))]


def test_a_short_last_shard_has_no_sequence_and_confuses_no_number(tmp_path: Path) -> None:
    index = written(tmp_path, range(110), shard_tokens=50)
    assert [shard.tokens for shard in index.shards] == [50, 50, 10]
    assert _corpus(tmp_path, index, length=20).sequences == 4


def test_large_tokens_are_read_as_they_were_written(tmp_path: Path) -> None:
    tokens = [0, 65_535, 65_536, 127_999, 1]
    index = written(tmp_path, tokens, vocabulary=128_000, dtype=TokenDtype.UINT32)
    assert _corpus(tmp_path, index, length=4).rows([0], 5).tolist() == [tokens]


def test_a_damaged_block_is_refused_when_it_is_read_and_only_then(tmp_path: Path) -> None:
    index = written(tmp_path, range(100), shard_tokens=50)  # blocks of 32 tokens
    spoil(tmp_path / "shard-00001.bin", 70)  # token 35 of the second shard
    corpus = _corpus(tmp_path, index, length=10)
    assert corpus.rows([0, 1, 2, 3, 4, 5, 6], 11).shape == (7, 11)
    with pytest.raises(DataError, match=r"^data corpus: shard-00001.bin is damaged at byte 64: ") as caught:
        corpus.rows([7], 11)
    assert "copy this shard again" in str(caught.value)


def test_a_shard_cut_short_while_it_is_read_is_refused(tmp_path: Path) -> None:
    index = written(tmp_path, range(100), shard_tokens=50)
    shard = tmp_path / "shard-00000.bin"
    shard.write_bytes(shard.read_bytes()[:10])
    with pytest.raises(
        DataError, match=r"shard-00000.bin is damaged at byte 0: .* of 10 bytes, .* of 64 bytes"
    ):
        _corpus(tmp_path, index, length=10).rows([0], 11)


def test_a_shard_that_is_gone_is_told(tmp_path: Path) -> None:
    index = written(tmp_path, range(100), shard_tokens=50)
    (tmp_path / "shard-00000.bin").unlink()
    with pytest.raises(DataError, match=r"No such file or directory: .*shard-00000.bin"):
        _corpus(tmp_path, index, length=10).rows([0], 11)


def test_a_token_outside_the_vocabulary_is_refused(tmp_path: Path) -> None:
    index = written(tmp_path, [*range(20), 300, *range(20)], vocabulary=256)
    corpus = _corpus(tmp_path, index, length=10)
    corpus.rows([0], 11)
    with pytest.raises(
        DataError, match=r"shard-00000.bin has token 300 behind byte 20, its vocabulary ends at 255"
    ):
        corpus.rows([1], 11)


def test_the_identity_is_that_of_the_tokens_wherever_they_lie(tmp_path: Path) -> None:
    one = written(tmp_path / "one", range(100))
    copy = written(tmp_path / "copy", range(100))
    other = written(tmp_path / "other", range(1, 101))
    assert one.identity == copy.identity != other.identity


def _reader(directory: Path, *, cache_bytes: int) -> tuple[BlockReader, Counting]:
    index = written(directory, range(200), shard_tokens=200)  # 400 bytes: 7 blocks
    place = Counting(_place(directory))
    return BlockReader(place, index.shards, block_bytes=index.block_bytes, cache_bytes=cache_bytes), place


def test_a_block_is_fetched_once_while_it_is_kept(tmp_path: Path) -> None:
    reader, place = _reader(tmp_path, cache_bytes=7 * 64)
    ranges = [Range(file=0, offset=offset, size=20) for offset in range(0, 380, 10)]
    reader.expect(ranges)
    data = [reader.read(one) for one in ranges]
    written_bytes = (tmp_path / "shard-00000.bin").read_bytes()
    assert data == [written_bytes[offset : offset + 20] for offset in range(0, 380, 10)]
    assert set(place.reads.values()) == {1}
    assert len(place.reads) == 7


def test_memory_is_bounded_and_what_was_dropped_is_fetched_again(tmp_path: Path) -> None:
    reader, place = _reader(tmp_path, cache_bytes=2 * 64)
    ranges = [Range(file=0, offset=64 * block, size=63) for block in range(6)]
    for _ in range(2):
        reader.expect(ranges)
        assert [len(reader.read(one)) for one in ranges] == [63] * 6
    assert len(reader._blocks) == 2
    assert max(place.reads.values()) >= 2


def test_a_block_that_was_read_whole_is_not_kept(tmp_path: Path) -> None:
    reader, place = _reader(tmp_path, cache_bytes=7 * 64)
    content = (tmp_path / "shard-00000.bin").read_bytes()
    reader.expect([Range(file=0, offset=0, size=400)])
    assert reader.read(Range(file=0, offset=10, size=200)) == content[10:210]
    assert set(reader._blocks) == {(0, block) for block in (0, 3, 4, 5, 6)}
    assert reader.read(Range(file=0, offset=384, size=16)) == content[384:]  # the last one is short
    assert reader.read(Range(file=0, offset=192, size=64)) == content[192:256]
    assert set(reader._blocks) == {(0, 0), (0, 4), (0, 5)}
    assert set(place.reads.values()) == {1}
    assert reader.read(Range(file=0, offset=70, size=4)) == content[70:74]
    assert place.reads["shard-00000.bin", 64] == 2


def test_threads_start_when_they_are_needed_and_end_with_their_reader(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    free = threading.Event()
    fetchers = Fetchers(lambda run: (lambda: b"x" * free.wait(30) for _ in run), threads=8)
    for ordered, wanted in [(1, 1), (3, 4), (16, 8)]:
        futures = [fetchers.order(((0, block),))[0] for block in range(ordered)]
        started = set(threading.enumerate()) - before
        assert len(started) == wanted
    free.set()
    assert [one.result(30) for one in futures] == [b"x"] * 16
    del fetchers
    gc.collect()
    for thread in started:
        thread.join(30)
        assert not thread.is_alive()


def test_a_thread_that_is_free_is_used_again(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    fetchers = Fetchers(lambda run: (lambda: b"x" for _ in run), threads=8)
    fetchers.order(((0, 0),))[0].result(30)
    while not fetchers._idle._value:
        pass  # it has the result before it says that it is free
    fetchers.order(((0, 1),))[0].result(30)
    assert len(set(threading.enumerate()) - before) == 1


def test_a_range_may_be_longer_than_the_cache(tmp_path: Path) -> None:
    reader, _ = _reader(tmp_path, cache_bytes=64)
    assert (
        reader.read(Range(file=0, offset=3, size=390)) == (tmp_path / "shard-00000.bin").read_bytes()[3:393]
    )
