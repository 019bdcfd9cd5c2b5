"""s3torchconnector's readers: the AWS CRT behind datasets of PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data_from_s3.files import LARGE, SMALL
from benchmarks.data_from_s3.source import Streams
from training.data.blocks import Range


class _Connector(Streams):
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
        batch = []
        for part in ranges:
            shards[part.file].seek(part.offset)
            batch.append(shards[part.file].read(part.size))
        return batch

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
        return (stream.read() for stream in self._iterated(SMALL))

    def _streamed(self, folder: str, names: Sequence[str]) -> Iterator[Callable[[int], bytes]]:
        return (stream.read for stream in self._iterated(folder) if Path(stream.key).name in names)

    def _iterated(self, folder: str) -> Any:
        from s3torchconnector import S3IterableDataset, S3ReaderConstructor  # noqa: PLC0415

        return self._dataset(S3IterableDataset, folder, S3ReaderConstructor.sequential())
