"""Measures how long a save holds training up: written beside the steps, and written before them.

Two ranks on CPUs with FSDP, 34 million weights and Adam's moments in fp32: 403 MB a checkpoint, with fsync.
Both kinds of saves take turns over the same steps, the first of each apart: it makes the buffers for the
copy. What counts is the time inside ``save()`` on the slower rank.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import FileStore
from torch.distributed.fsdp import fully_shard
from torch.optim import AdamW, Optimizer
from trainmaster_client.report import Report

from training.preemptible.checkpoint import Checkpointer, LocalStore, Retention

ROOT = Path(__file__).resolve().parents[1]
MAX_RATIO = 0.2
SAVES = 7
RANKS = 2
LAYERS, WIDTH = 8, 2048
_TIMEOUT_S = 600.0


@dataclass(slots=True)
class Seconds:
    """Measured seconds of one rank, by save."""

    sync: list[float] = field(default_factory=list)
    stall: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    """Seconds between the call of an asynchronous save and its manifest."""
    step: list[float] = field(default_factory=list)
    """Seconds of a step with no save in flight."""
    step_beside: list[float] = field(default_factory=list)
    """Seconds of the first step after an asynchronous save began."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_stall", description=__doc__)
    parser.add_argument("--saves", type=int, default=SAVES, help="of each kind, beside the first")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "checkpoint-stall.json", metavar="PATH")
    options = parser.parse_args(arguments)
    report = Report("benchmarks.checkpoint_stall")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.json.parent) as folder:
        by_rank = measured(Path(folder), options.saves)
    slower = Seconds(**{name: _slower(by_rank, name) for name in Seconds.__slots__})
    report.facts |= {"weights": LAYERS * WIDTH * WIDTH, "by_rank": [asdict(seconds) for seconds in by_rank]}
    sync, stall = median(slower.sync[1:]), median(slower.stall[1:])
    _print(slower)
    report.check(
        "stall",
        expected=f"at most {MAX_RATIO:.0%} of a synchronous save",
        actual=f"{stall / sync:.1%}",
        ok=stall <= MAX_RATIO * sync,
    )
    return report.finish(options.json)


def measured(folder: Path, saves: int) -> list[Seconds]:
    """Return what each rank measured."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=_rank, args=(rank, folder, saves, queue)) for rank in range(RANKS)]
    for process in processes:
        process.start()
    seconds_by_rank: dict[int, Seconds] = dict(queue.get(timeout=_TIMEOUT_S) for _ in processes)
    for process in processes:
        process.join()
    return [seconds_by_rank[rank] for rank in range(RANKS)]


def _rank(rank: int, folder: Path, saves: int, queue: "multiprocessing.Queue[tuple[int, Seconds]]") -> None:
    with ranks_joined(rank, folder):
        queue.put((rank, _seconds(folder, saves)))


@contextmanager
def ranks_joined(rank: int, folder: Path) -> Iterator[None]:
    """Join the ranks of this machine, each with one thread; they leave together."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo", store=FileStore(str(folder / "ranks"), RANKS), rank=rank, world_size=RANKS
    )
    yield
    dist.barrier()
    dist.destroy_process_group()


def sharded() -> tuple[nn.Module, Optimizer]:
    """Make the model, sharded over the ranks, and its optimizer, which has no moments yet."""
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    for part in (*model, model):
        fully_shard(part)
    return model, AdamW(model.parameters(), lr=1e-4)


def _seconds(folder: Path, saves: int) -> Seconds:
    model, optimizer = sharded()
    kinds = {
        kind: Checkpointer(
            LocalStore(folder / kind),
            model=model,
            optimizer=optimizer,
            keep=Retention(newest=1),
            asynchronous=kind == "async",
        )
        for kind in ("sync", "async")
    }
    for checkpointer in kinds.values():
        checkpointer.load_newest()
    seconds = Seconds()
    for number in range(1, saves + 2):
        seconds.step.append(train_step(model, optimizer))
        seconds.sync.append(_timed(kinds["sync"], number))
        train_step(model, optimizer)
        began = time.perf_counter()
        seconds.stall.append(_timed(kinds["async"], number))
        seconds.step_beside.append(train_step(model, optimizer))
        kinds["async"].wait()
        seconds.published.append(time.perf_counter() - began)
    return seconds


def train_step(model: nn.Module, optimizer: Optimizer) -> float:
    """Train one step; return its seconds."""
    began = time.perf_counter()
    model(torch.ones(4, WIDTH)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - began


def _timed(checkpointer: Checkpointer, step: int) -> float:
    dist.barrier()  # one rank must not pay for what the other does late
    began = time.perf_counter()
    checkpointer.save(step)
    return time.perf_counter() - began


def _slower(by_rank: Sequence[Seconds], name: str) -> list[float]:
    return [max(both) for both in zip(*(getattr(seconds, name) for seconds in by_rank), strict=True)]


def _print(slower: Seconds) -> None:
    rows = {
        "synchronous save": slower.sync,
        "asynchronous save, held up": slower.stall,
        "asynchronous save, published": slower.published,
        "step": slower.step,
        "step beside a save": slower.step_beside,
    }
    for name, seconds in rows.items():
        print(f"{name:30} median {median(seconds[1:]):7.3f} s   first {seconds[0]:7.3f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
