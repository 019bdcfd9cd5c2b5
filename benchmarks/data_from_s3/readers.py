"""The readers, each as its own documentation uses it. All give bytes in pieces of 1 MiB or single samples."""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from benchmarks.data_from_s3.files import LARGE, SAMPLES, SMALL, Files
from training.data.batches import Order
from training.data.blocks import BlockReader, Range
from training.data.index import BLOCK_BYTES, INDEX, parse_index
from training.data.s3 import S3Place, s3_place

PIECE = 2**20
_THREADS = 8
"""As the range reader has."""
_AHEAD = 16
"""Pieces that are asked for before the first of them is used."""
_BATCH = 64
"""Small samples, likewise."""
_SEED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    bucket: str
    folder: Path
    """The same files, on a disk or mounted."""
    region: str
    endpoint: str | None
    files: Files


class Reader(ABC):
    checks = False
    """It compares checksums itself."""
    seeks = True
    """It gives ranges; else all before them has to be read."""

    def __init__(self, source: Source) -> None:
        self.source, self.files = source, source.files

    @abstractmethod
    def large(self) -> Iterator[bytes]:
        """All of the large shards."""

    @abstractmethod
    def small(self) -> Iterator[bytes]:
        """Each sample, an object of its own."""

    @abstractmethod
    def samples(self) -> Iterator[bytes]:
        """Each sample, from shards."""

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Ranges of the large shards."""
        raise AssertionError(f"{type(self).__name__} does not seek, {len(ranges)} ranges were asked for")


class _Streams(Reader):
    """What reads objects from their beginning; samples of shards come in their order."""

    def samples(self) -> Iterator[bytes]:
        size = self.files.amount.sample_bytes
        for shard in self._streamed(SAMPLES, [one.name for one in self.files.samples]):
            while sample := shard(size):
                yield sample

    @abstractmethod
    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        """Of each object, what reads its next bytes."""

    def _pieces(self) -> Iterator[bytes]:
        for shard in self._streamed(LARGE, self.files.large):
            while piece := shard(PIECE):
                yield piece


class RangeReader(Reader):
    """The training program's own, in the order in which training reads."""

    checks = True

    def large(self) -> Iterator[bytes]:
        shards = parse_index(self._large.read(INDEX, 0, self._large.sizes()[INDEX]), place=LARGE).shards
        reader = BlockReader(self._large, shards, block_bytes=BLOCK_BYTES)
        ranges = [
            Range(file=number, offset=at, size=min(PIECE, shard.bytes - at))
            for number, shard in enumerate(shards)
            for at in range(0, shard.bytes, PIECE)
        ]
        yield from _read(reader, ranges, ahead=_AHEAD)

    def small(self) -> Iterator[bytes]:
        place, size = s3_place(f"s3://{self.source.bucket}/{SMALL}"), self.files.amount.sample_bytes
        place.sizes()
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda name: place.read(name, 0, size), self.files.small)

    def samples(self) -> Iterator[bytes]:
        """Shuffled, as training reads them."""
        amount = self.files.amount
        reader = BlockReader(self._samples, self.files.samples, block_bytes=BLOCK_BYTES)
        order = Order(sequences=amount.samples, chunk=max(1, BLOCK_BYTES // amount.sample_bytes), seed=_SEED)
        numbers = map(order.number, range(amount.samples))
        places = (divmod(number, amount.samples_a_shard) for number in numbers)
        size = amount.sample_bytes
        ranges = [Range(file=shard, offset=at * size, size=size) for shard, at in places]
        yield from _read(reader, ranges, ahead=_BATCH)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        shards = parse_index(self._large.read(INDEX, 0, self._large.sizes()[INDEX]), place=LARGE).shards
        return list(
            _read(BlockReader(self._large, shards, block_bytes=BLOCK_BYTES), ranges, ahead=len(ranges))
        )

    @cached_property
    def _samples(self) -> S3Place:
        return s3_place(f"s3://{self.source.bucket}/{SAMPLES}")

    @cached_property
    def _large(self) -> S3Place:
        return s3_place(f"s3://{self.source.bucket}/{LARGE}")


def _read(reader: BlockReader, ranges: Sequence[Range], *, ahead: int) -> Iterator[bytes]:
    reader.expect(ranges[:ahead])
    for first in range(0, len(ranges), ahead):
        reader.expect(ranges[first + ahead : first + 2 * ahead])
        yield from map(reader.read, ranges[first : first + ahead])


class _Boto(_Streams):
    @cached_property
    def client(self) -> Any:
        return boto3.client("s3")

    def _got(self, folder: str, name: str) -> Any:
        return self.client.get_object(Bucket=self.source.bucket, Key=f"{folder}/{name}")["Body"]


class BotoRanges(_Boto):
    """GetObject with ranges in eight threads: what the range reader did before."""

    def large(self) -> Iterator[bytes]:
        size = self.files.amount.shard_bytes
        ranges = [
            Range(file=number, offset=at, size=min(PIECE, size - at))
            for number in range(len(self.files.large))
            for at in range(0, size, PIECE)
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            for first in range(0, len(ranges), _AHEAD):
                yield from pool.map(self._range, ranges[first : first + _AHEAD])

    def small(self) -> Iterator[bytes]:
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda name: self._got(SMALL, name).read(), self.files.small)

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        return (self._got(folder, name).read for name in names)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._range, ranges))

    def _range(self, one: Range) -> bytes:
        answer = self.client.get_object(
            Bucket=self.source.bucket,
            Key=f"{LARGE}/{self.files.large[one.file]}",
            Range=f"bytes={one.offset}-{one.offset + one.size - 1}",
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


class _Connector(_Streams):
    def _dataset(self, kind: Any, folder: str, constructor: Any) -> Any:
        from s3torchconnector import S3ClientConfig  # noqa: PLC0415  workers of others do without it

        return kind.from_prefix(
            f"s3://{self.source.bucket}/{folder}/",
            region=self.source.region,
            endpoint=self.source.endpoint,
            s3client_config=S3ClientConfig(force_path_style=self.source.endpoint is not None),
            reader_constructor=constructor,
        )


class ConnectorMap(_Connector):
    """S3MapDataset with readers of ranges."""

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        dataset = self._mapped(SMALL)
        return (dataset[number].read() for number in range(len(dataset)))

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        dataset = self._mapped(LARGE)
        keys = {Path(dataset[number].key).name: number for number in range(len(dataset))}
        shards = [dataset[keys[name]] for name in self.files.large]
        found = []
        for one in ranges:
            shards[one.file].seek(one.offset)
            found.append(shards[one.file].read(one.size))
        return found

    def _mapped(self, folder: str) -> Any:
        from s3torchconnector import S3MapDataset, S3ReaderConstructor  # noqa: PLC0415

        # Without a buffer a batch costs what it reads, not 8 MiB for each of its ranges.
        return self._dataset(S3MapDataset, folder, S3ReaderConstructor.range_based(buffer_size=0))

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        from s3torchconnector import S3MapDataset, S3ReaderConstructor  # noqa: PLC0415

        dataset = self._dataset(S3MapDataset, folder, S3ReaderConstructor.range_based())
        for number in range(len(dataset)):
            if Path(dataset[number].key).name in names:
                yield dataset[number].read


class ConnectorIterable(_Connector):
    """S3IterableDataset, each object read as it comes."""

    seeks = False

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return (one.read() for one in self._iterated(SMALL))

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        return (one.read for one in self._iterated(folder) if Path(one.key).name in names)

    def _iterated(self, folder: str) -> Any:
        from s3torchconnector import S3IterableDataset, S3ReaderConstructor  # noqa: PLC0415

        return self._dataset(S3IterableDataset, folder, S3ReaderConstructor.sequential())


class PlainFiles(_Streams):
    """open and read: what File mode leaves on the disk, or what FastFile and Mountpoint mount."""

    def large(self) -> Iterator[bytes]:
        return self._pieces()

    def small(self) -> Iterator[bytes]:
        return ((self.source.folder / SMALL / name).read_bytes() for name in self.files.small)

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        found = []
        for one in ranges:
            with (self.source.folder / LARGE / self.files.large[one.file]).open("rb", buffering=0) as file:
                file.seek(one.offset)
                found.append(file.read(one.size))
        return found

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        for name in names:
            with (self.source.folder / folder / name).open("rb", buffering=0) as file:
                yield file.read


OURS, PLAIN = "range reader", "plain files"
READERS: dict[str, type[Reader]] = {
    OURS: RangeReader,
    "boto3 ranges": BotoRanges,
    "boto3 stream": BotoStream,
    "boto3 multipart": BotoMultipart,
    "s3torchconnector map": ConnectorMap,
    "s3torchconnector iterable": ConnectorIterable,
    PLAIN: PlainFiles,
}
