"""Measures what verifying adds to a load: the same checkpoint, read with its hashes and without any.

One rank on a CPU, 34 million weights and Adam's moments in fp32: 403 MB. Read from the page cache, which no
job that resumes on a new host has, and at the speed of a disk or of S3, where reads are made to take as long
as 1 GB/s lets them. Hashes are taken in threads beside the reading. All kinds of loads take turns, and the
fastest of each counts: what else runs on the machine only adds.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW
from trainmaster_client.report import Report

from benchmarks.tables import aligned
from training.preemptible.checkpoint import Checkpointer, LocalStore, shards
from training.preemptible.checkpoint.hashes import Seconds, VerifyingReader
from training.preemptible.checkpoint.manifest import INDEX_COPY
from training.preemptible.checkpoint.shards import read_index
from training.preemptible.checkpoint.store import name_of

ROOT = Path(__file__).resolve().parents[1]
MAX_SHARE = 0.05
LOADS = 10
SPEEDS = {"page cache": None, "1 GB/s": 1e9}
"""Bytes a second; None: as fast as it goes."""
LAYERS, WIDTH = 8, 2048


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_verify", description=__doc__)
    parser.add_argument("--loads", type=int, default=LOADS, help="of each kind (%(default)s)")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "checkpoint-verify.json", metavar="PATH"
    )
    options = parser.parse_args(arguments)
    report = Report("benchmarks.checkpoint_verify")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.json.parent) as folder:
        runs, size = measured(Path(folder), options.loads)
    report.facts |= {"bytes": size, "loads": runs}
    both = {kind: min(found, key=lambda seconds: seconds["wall"]) for kind, found in runs.items()}
    _print(both, size)
    share = {where: both[f"{where}, verified"]["wall"] / both[where]["wall"] - 1 for where in SPEEDS}
    report.facts["share"] = share
    print(f"from the page cache it costs {share['page cache']:.1%}")
    report.check(
        "verify-share",
        expected=f"at most {MAX_SHARE:.0%} of the time of a load at 1 GB/s",
        actual=f"{share['1 GB/s']:.1%}",
        ok=share["1 GB/s"] <= MAX_SHARE,
    )
    return report.finish(options.json)


def measured(folder: Path, loads: int) -> tuple[dict[str, list[Seconds]], int]:
    """Return the seconds of each load by its kind, and the bytes of the checkpoint."""
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    optimizer = AdamW(model.parameters(), lr=1e-4)
    store = LocalStore(folder)
    checkpointer = Checkpointer(store, model=model, optimizer=optimizer, asynchronous=False)
    checkpointer.load_newest()
    checkpointer.save(1)
    name = name_of(1)
    content = (folder / name / INDEX_COPY).read_bytes()
    hashed, plain = read_index(content), read_index(content)
    for place in plain.storage_data.values():
        del place.hash
    kinds = {
        f"{where}{', verified' if index is hashed else ''}": (speed, index)
        for where, speed in SPEEDS.items()
        for index in (plain, hashed)
    }
    loads_by_kind: dict[str, list[Seconds]] = {kind: [] for kind in kinds}
    for number in range(loads + 1):
        for kind in sorted(kinds, reverse=bool(number % 2)):
            speed, index = kinds[kind]
            seconds: Seconds = {}
            reader = _Paced(folder / name, index=index, seconds=seconds)
            reader.bytes_per_second = speed
            wall, cpu = time.perf_counter(), time.process_time()
            shards.read(model, optimizer, reader, None, seconds)
            seconds |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            if number:  # the first of each warms up
                loads_by_kind[kind].append({"verify": 0.0, **seconds})
    return loads_by_kind, sum(store.sizes(name).values())


class _Paced(VerifyingReader):
    bytes_per_second: float | None = None

    def _slice_file(self, file: Any, sinfo: Any) -> Any:
        stream = super()._slice_file(file, sinfo)
        return _PacedStream(stream, self.bytes_per_second) if self.bytes_per_second else stream


class _PacedStream:
    """Each byte comes when a disk of that speed would have it, if it is asked for the item at once."""

    def __init__(self, stream: Any, bytes_per_second: float) -> None:
        self._stream, self._bytes_per_second = stream, bytes_per_second
        self._began, self._read = time.perf_counter(), 0

    def readinto(self, block: memoryview) -> int:
        size: int = self._stream.readinto(block)
        self._read += size
        comes_at = self._began + self._read / self._bytes_per_second
        time.sleep(max(0.0, comes_at - time.perf_counter()))
        return size


def _print(both: dict[str, Seconds], size: int) -> None:
    parts = ("wall", "cpu", "plan", "read", "apply", "verify")
    print(f"{size / 1e6:.0f} MB; the fastest of each, in seconds; verify: waited for hashes")
    rows = [(kind, *(f"{seconds[part]:.3f}" for part in parts)) for kind, seconds in both.items()]
    print("\n".join(aligned([("", *parts), *rows], named=True)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
