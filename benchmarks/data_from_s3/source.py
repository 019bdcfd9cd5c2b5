"""Defines what a reader is given, and what it has to give."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data_from_s3.files import LARGE, SAMPLES, Files
from training.data.blocks import Range

PIECE = 2**20


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
    """Whether it compares checksums itself."""
    seeks = True
    """Whether it gives ranges; else all before them has to be read."""

    def __init__(self, source: Source) -> None:
        self.source, self.files = source, source.files

    @abstractmethod
    def large(self) -> Iterator[bytes]:
        """Yield all of the large shards."""

    @abstractmethod
    def small(self) -> Iterator[bytes]:
        """Yield each sample, read from an object of its own."""

    @abstractmethod
    def samples(self) -> Iterator[bytes]:
        """Yield each sample, read from shards."""

    def batch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return ranges of the large shards."""
        raise AssertionError(f"{type(self).__name__} does not seek, {len(ranges)} ranges were asked for")


class Streams(Reader):
    """Reads objects from their beginning; samples of shards come in their order."""

    def samples(self) -> Iterator[bytes]:
        size = self.files.amount.sample_bytes
        for shard in self._streamed(SAMPLES, [shard_file.name for shard_file in self.files.samples]):
            while sample := shard(size):
                yield sample

    @abstractmethod
    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        """Yield, for each object, a function that reads its next bytes."""

    def _pieces(self) -> Iterator[bytes]:
        for shard in self._streamed(LARGE, self.files.large):
            while piece := shard(PIECE):
                yield piece
