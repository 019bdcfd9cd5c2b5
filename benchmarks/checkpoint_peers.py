"""Saves a checkpoint in five ways: ours, ours synchronous, torch.save and torch.distributed.checkpoint's two.

Two ranks on CPUs with FSDP, 34 million weights and Adam's moments in fp32, 403 MB. Each way has processes of
its own. What counts is how long a save holds the slower rank up, how long until the files are whole and
synced, and the largest resident memory of a rank during its saves beyond what it had before the first.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.checkpoint.state_dict_saver import async_save as dcp_async_save
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save
from torch.optim import Optimizer
from trainmaster_client.report import Report

from benchmarks.checkpoint_stall import RANKS, ranks_joined, sharded, train_step
from training.preemptible.checkpoint import Checkpointer, LocalStore, Retention

ROOT = Path(__file__).resolve().parents[1]
SAVES = 4
_MIB = 2**20
_TIMEOUT_S = 600.0
_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"
"""Written to clear_refs: the peak becomes what is resident now (Linux, proc(5))."""

Save = Callable[[int], Callable[[], object]]
"""Begins a save of this number; what it returns waits until the files are whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Figures of one rank's saves: medians without the first, which makes buffers, and the peak of all."""

    held_seconds: float
    whole_seconds: float
    peak_mib: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_peers", description=__doc__)
    parser.add_argument("--saves", type=int, default=SAVES, help="of each way, beside the first")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "checkpoint-peers.json", metavar="PATH")
    options = parser.parse_args(arguments)
    report = Report("benchmarks.checkpoint_peers")
    if not _REFS.exists():
        report.skip("memory", expected="measured", reason="needs /proc of Linux")
        return report.finish(options.json)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    slower: dict[str, Saved] = {}
    for way in WAYS:
        with TemporaryDirectory(dir=options.json.parent) as folder:
            slower[way] = _slower(_measured(way, Path(folder), options.saves))
        print(f"{way:16} {_line(slower[way])}", flush=True)
    report.facts["ways"] = {way: asdict(saved) for way, saved in slower.items()}
    ours, peer, gathered = (slower[way] for way in ("ours", "dcp.async_save", "torch.save"))
    bounds = (
        ("held", "a fifth of torch.save's", ours.held_seconds, gathered.held_seconds / 5),
        ("whole", "dcp.async_save's", ours.whole_seconds, peer.whole_seconds),
        ("memory", "1.25 times dcp.async_save's", ours.peak_mib, 1.25 * peer.peak_mib),
    )
    for name, said, actual, most in bounds:
        expected = f"at most {said}, {most:.3g}"
        report.check(name, expected=expected, actual=f"{actual:.3g}", ok=actual <= most)
    return report.finish(options.json)


def _line(saved: Saved) -> str:
    held, whole = f"held {saved.held_seconds:7.3f} s", f"whole after {saved.whole_seconds:7.3f} s"
    return f"{held}   {whole}   memory +{saved.peak_mib:5.0f} MiB"


def _measured(way: str, folder: Path, saves: int) -> list[Saved]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_rank, args=(rank, way, folder, saves, queue)) for rank in range(RANKS)
    ]
    for process in processes:
        process.start()
    saved = [queue.get(timeout=_TIMEOUT_S) for _ in processes]
    for process in processes:
        process.join()
    return saved


def _rank(rank: int, way: str, folder: Path, saves: int, queue: "multiprocessing.Queue[Saved]") -> None:
    with ranks_joined(rank, folder):
        model, optimizer = sharded()
        save = WAYS[way](folder / "saved", model, optimizer)
        for _ in range(2):  # the optimizer has its moments, the allocator its blocks
            train_step(model, optimizer)
        before, peaks = _resident("VmRSS"), list[float]()
        held, whole = list[float](), list[float]()
        for number in range(1, saves + 2):
            dist.barrier()
            _REFS.write_text(_FORGET_PEAK)
            began = time.perf_counter()
            wait = save(number)
            held.append(time.perf_counter() - began)
            train_step(model, optimizer)
            wait()
            whole.append(time.perf_counter() - began)
            peaks.append(_resident("VmHWM"))
        queue.put(
            Saved(
                held_seconds=median(held[1:]),
                whole_seconds=median(whole[1:]),
                peak_mib=(max(peaks) - before) / _MIB,
            )
        )


def _slower(by_rank: Sequence[Saved]) -> Saved:
    """Return the most of each figure over the ranks."""
    figures = (max(values) for values in zip(*(asdict(saved).values() for saved in by_rank), strict=True))
    return Saved(**dict(zip(asdict(by_rank[0]), figures, strict=True)))


def _resident(what: str) -> float:
    """Return the bytes that Linux has under this name for the process."""
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(f"{what}:"))
    return float(line.split()[1]) * 1024


def _ours(folder: Path, model: nn.Module, optimizer: Optimizer, *, asynchronous: bool = True) -> Save:
    saver = Checkpointer(
        LocalStore(folder),
        model=model,
        optimizer=optimizer,
        keep=Retention(newest=1),
        asynchronous=asynchronous,
    )
    saver.load_newest()

    def save(number: int) -> Callable[[], object]:
        saver.save(number)
        return saver.wait

    return save


def _ours_synchronous(folder: Path, model: nn.Module, optimizer: Optimizer) -> Save:
    return _ours(folder, model, optimizer, asynchronous=False)


def _torch_save(folder: Path, model: nn.Module, optimizer: Optimizer) -> Save:
    """Gather all to rank 0, as FSDP users do for one file."""
    folder.mkdir(exist_ok=True)

    def save(number: int) -> Callable[[], object]:
        gathered = StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights, moments = get_state_dict(model, optimizer, options=gathered)
        if dist.get_rank() == 0:
            with (folder / "checkpoint.pt").open("wb") as file:
                torch.save({"model": weights, "optimizer": moments, "step": number}, file)
                file.flush()
                os.fsync(file.fileno())
        dist.barrier()
        return lambda: None

    return save


def _sharded_state(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}


def _dcp_save(folder: Path, model: nn.Module, optimizer: Optimizer) -> Save:
    def save(number: int) -> Callable[[], object]:
        dcp_save(_sharded_state(model, optimizer), checkpoint_id=folder / str(number))
        return lambda: None

    return save


def _dcp_async_save(folder: Path, model: nn.Module, optimizer: Optimizer) -> Save:
    own = dist.new_group()  # its thread talks beside the steps, which use the other one

    def save(number: int) -> Callable[[], object]:
        state = _sharded_state(model, optimizer)
        future = dcp_async_save(state, checkpoint_id=folder / str(number), process_group=own)
        assert isinstance(future, Future)
        return future.result

    return save


WAYS: dict[str, Callable[[Path, nn.Module, Optimizer], Save]] = {
    "ours": _ours,
    "ours synchronous": _ours_synchronous,
    "torch.save": _torch_save,
    "dcp.save": _dcp_save,
    "dcp.async_save": _dcp_async_save,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
