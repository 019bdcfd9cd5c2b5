"""One reader in a process of its own: a line of JSON asks for a measurement, a line of JSON has it.

Modules are imported before the first clock starts; each measurement has a new reader, with its
client and its listing.
"""

import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from benchmarks.data_from_s3.files import described
from benchmarks.data_from_s3.readers import READERS
from benchmarks.data_from_s3.sequential import SEQUENTIAL
from benchmarks.data_from_s3.source import Reader, Source
from training.data.batches import Order
from training.data.blocks import Range

READY = "ready"
BATCH, SEQUENCE_BYTES = 32, 4096
"""A batch: so many sequences of 2,048 tokens of two bytes."""
PASSES = 8
"""Over the samples in shards, by one client: else its making is most of what is measured."""
_SEED = 5


def main(arguments: list[str]) -> None:
    name, bucket, folder, region, endpoint = arguments
    source = Source(
        bucket=bucket,
        folder=Path(folder),
        region=region,
        endpoint=endpoint or None,
        files=described(Path(folder)),
    )
    if "s3torchconnector" in name:
        __import__("s3torchconnector")
    print(READY, flush=True)
    serve(lambda: (READERS | SEQUENTIAL)[name](source), sys.stdin, sys.stdout)


def serve(made: Callable[[], Reader], questions: Iterable[str], answers: TextIO) -> None:
    for line in questions:
        question = json.loads(line)
        print(json.dumps(measured(made, **question)), file=answers, flush=True)


def measured(
    made: Callable[[], Reader], case: str, *, checked: bool = False, step: int = 1
) -> dict[str, Any]:
    """Measure wall and CPU seconds of this process, and what came."""
    wall, cpu = time.perf_counter(), time.process_time()
    reader = made()
    checked = checked and not reader.checks
    pieces = size = 0
    for piece in _pieces(reader, case, step):
        pieces, size = pieces + 1, size + len(piece)
        if checked:
            zlib.crc32(piece)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "pieces": pieces,
        "bytes": size,
    }


def _pieces(reader: Reader, case: str, step: int) -> Iterable[bytes]:
    if case == "batch":
        return reader.batch(ranges_of(reader, step)) if reader.seeks else _passed(reader, step)
    if case == "samples":
        return chain.from_iterable(reader.samples() for _ in range(PASSES))
    return {"large": reader.large, "objects": reader.small}[case]()


def ranges_of(reader: Reader, step: int) -> list[Range]:
    """Return the ranges of a step's batch, in the order in which the program trains."""
    amount = reader.files.amount
    whole = amount.shard_bytes // SEQUENCE_BYTES
    order = Order(sequences=amount.shards * whole, chunk=2**20 // SEQUENCE_BYTES, seed=_SEED)
    numbers = (order.number((step - 1) * BATCH + row) for row in range(BATCH))
    places = (divmod(number, whole) for number in numbers)
    return [Range(file=shard, offset=at * SEQUENCE_BYTES, size=SEQUENCE_BYTES) for shard, at in places]


def _passed(reader: Reader, step: int) -> Iterable[bytes]:
    """Yield a stream up to a step: it begins at its beginning, so earlier steps' pieces pass by."""
    left = step * BATCH * SEQUENCE_BYTES
    for piece in reader.large():
        yield piece
        left -= len(piece)
        if left <= 0:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
