"""The readers, each as its own documentation uses it. All give bytes in pieces of 1 MiB or single samples."""

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import boto3

from benchmarks.data_from_s3.connector import ConnectorIterable, ConnectorMap
from benchmarks.data_from_s3.files import LARGE, SAMPLES, SMALL, Files
from benchmarks.data_from_s3.source import PIECE, Reader, Streams
from training.data.batches import Order
from training.data.blocks import BlockReader, Range
from training.data.index import BLOCK_BYTES, INDEX, parse_index
from training.data.s3 import S3Place, s3_place

_THREADS = 8
"""Threads of a reader, as many as the range reader has."""
_AHEAD, _PARTS_AHEAD = 64, 16
"""Pieces that are requested before the first of them is used: by the range reader, by boto3's ranges."""
_NEAR = 16
"""Pieces that a reader of whole files requests ahead when memory matters more than waiting: 16 to 32 MiB."""
_BATCH = 64
"""Small samples that are requested before the first of them is used."""
_SEED = 3


class RangeReader(Reader):
    """The training program's own, in the order in which training reads."""

    checks = True
    ahead = _AHEAD

    def large(self) -> Iterator[bytes]:
        yield from _read(self._large, _ranges(self.files), ahead=self.ahead)

    def small(self) -> Iterator[bytes]:
        place, size = s3_place(f"s3://{self.source.bucket}/{SMALL}"), self.files.amount.sample_bytes
        place.sizes()
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda name: place.read(name, 0, size), self.files.small)

    def samples(self) -> Iterator[bytes]:
        """Yield samples shuffled, as training reads them."""
        amount = self.files.amount
        reader = BlockReader(self._samples, self.files.samples, block_bytes=BLOCK_BYTES)
        order = Order(sequences=amount.samples, chunk=max(1, BLOCK_BYTES // amount.sample_bytes), seed=_SEED)
        numbers = map(order.number, range(amount.samples))
        places = (divmod(number, amount.samples_a_shard) for number in numbers)
        size = amount.sample_bytes
        ranges = [Range(file=shard, offset=at * size, size=size) for shard, at in places]
        yield from _read(reader, ranges, ahead=_BATCH)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        return list(_read(self._large, ranges, ahead=len(ranges)))

    @cached_property
    def _samples(self) -> S3Place:
        return s3_place(f"s3://{self.source.bucket}/{SAMPLES}")

    @property
    def _large(self) -> BlockReader:
        """Open the large shards as a job begins: listing, index, then blocks."""
        place = s3_place(f"s3://{self.source.bucket}/{LARGE}")
        index = parse_index(place.read(INDEX, 0, place.sizes()[INDEX]), place=LARGE)
        return BlockReader(place, index.shards, block_bytes=BLOCK_BYTES)


def _ranges(files: Files) -> list[Range]:
    """Return the ranges of all large shards."""
    size = files.amount.shard_bytes
    return [
        Range(file=number, offset=at, size=min(PIECE, size - at))
        for number in range(len(files.large))
        for at in range(0, size, PIECE)
    ]


def _read(reader: BlockReader, ranges: Sequence[Range], *, ahead: int) -> Iterator[bytes]:
    reader.expect(ranges[:ahead])
    for first in range(0, len(ranges), ahead):
        reader.expect(ranges[first + ahead : first + 2 * ahead])
        yield from map(reader.read, ranges[first : first + ahead])


class NearRangeReader(RangeReader):
    """The same, as a pass in order can have it: what is read ahead stays in a processor's cache."""

    ahead = _NEAR


class _Boto(Streams):
    @cached_property
    def client(self) -> Any:
        return boto3.client("s3")

    def _got(self, folder: str, name: str) -> Any:
        return self.client.get_object(Bucket=self.source.bucket, Key=f"{folder}/{name}")["Body"]


class BotoRanges(_Boto):
    """GetObject with ranges in eight threads: what the range reader did before."""

    def large(self) -> Iterator[bytes]:
        ranges = _ranges(self.files)
        with ThreadPoolExecutor(_THREADS) as pool:
            for first in range(0, len(ranges), _PARTS_AHEAD):
                yield from pool.map(self._range, ranges[first : first + _PARTS_AHEAD])

    def small(self) -> Iterator[bytes]:
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda name: self._got(SMALL, name).read(), self.files.small)

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        return (self._got(folder, name).read for name in names)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._range, ranges))

    def _range(self, part: Range) -> bytes:
        answer = self.client.get_object(
            Bucket=self.source.bucket,
            Key=f"{LARGE}/{self.files.large[part.file]}",
            Range=f"bytes={part.offset}-{part.offset + part.size - 1}",
        )
        content: bytes = answer["Body"].read()
        return content


class BotoStream(BotoRanges):
    """One GetObject for each object, read as it comes, in one thread."""

    seeks = False

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return (self._got(SMALL, name).read() for name in self.files.small)


class BotoMultipart(_Boto):
    """download_fileobj of s3transfer: parts of 8 MiB in ten threads, into memory."""

    seeks = False

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return (read(self.files.amount.sample_bytes) for read in self._streamed(SMALL, self.files.small))

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        for name in names:
            memory = io.BytesIO()
            self.client.download_fileobj(self.source.bucket, f"{folder}/{name}", memory)
            memory.seek(0)
            yield memory.read


class PlainFiles(Streams):
    """open and read: what File mode leaves on the disk, or what FastFile and Mountpoint mount."""

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return ((self.source.folder / SMALL / name).read_bytes() for name in self.files.small)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        contents = []
        for part in ranges:
            with (self.source.folder / LARGE / self.files.large[part.file]).open("rb", buffering=0) as file:
                file.seek(part.offset)
                contents.append(file.read(part.size))
        return contents

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        for name in names:
            with (self.source.folder / folder / name).open("rb", buffering=0) as file:
                yield file.read


OURS, NEAR, PLAIN = "range reader", "range reader, near", "plain files"
READERS: dict[str, type[Reader]] = {
    OURS: RangeReader,
    NEAR: NearRangeReader,
    "boto3 ranges": BotoRanges,
    "boto3 stream": BotoStream,
    "boto3 multipart": BotoMultipart,
    "s3torchconnector map": ConnectorMap,
    "s3torchconnector iterable": ConnectorIterable,
    PLAIN: PlainFiles,
}
