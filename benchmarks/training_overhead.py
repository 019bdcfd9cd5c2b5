"""Measures what agreement and metrics add to a training step: two ranks, our own trainer and reporter.

Every other step goes without votes, metric lines and their reading of the device, so both kinds see the same
machine. Checked is the CPU time inside those calls, of all threads, against that of a bare step.
The time that passes inside them is printed beside it: mostly a wait for the slower rank, for which a bare
step waits in its next collective instead. Whether waiting earlier costs more is what the ratio of the two
kinds of steps says; on a shared machine that drowns in noise.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from trainmaster_client.report import Report

from benchmarks.training.bench.modes import OneBatch
from training.config import TrainConfig
from training.config.choices import Precision
from training.job import make_model
from training.loop import Trainer
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.preemptible.agreement import Agreement, Decision
from training.preemptible.preempt import StopRequest
from training.ranks.world import World, joined_world

ROOT = Path(__file__).resolve().parents[1]
RANKS = 2
MAX_SHARE = 0.005
STEPS = 40
"""Steps of each kind."""
WARM_UP = 4
CONFIG = TrainConfig(
    preset="tiny", sequence_length=512, batch_size=16, precision=Precision.FP32, steps=10 * STEPS, lr=3e-4
)
"""About as long a step as GPUs take for a large model: half a second and more. A metric line every step."""


@dataclass(slots=True)
class Spent:
    """Time spent, in seconds."""

    cpu: float = 0.0
    """CPU seconds of all threads of this process; it uses none while it waits."""
    passed: float = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        cpu, passed = time.process_time(), time.perf_counter()
        yield
        self.cpu += time.process_time() - cpu
        self.passed += time.perf_counter() - passed


class SometimesAgreed(Agreement):
    """Votes while it is on, and adds up what its caller spends."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__(stop)
        self.on, self.spent = True, Spent()

    def begin(self, *, save: bool = False, seconds_needed: Callable[[], float] | None = None) -> None:
        if self.on:
            with self.spent.counted():
                super().begin(save=save, seconds_needed=seconds_needed)

    def settled(self) -> Decision:
        if not self.on:
            return Decision(stop=False, save=False, seconds_left=0.0)
        with self.spent.counted():
            return super().settled()


@dataclass(slots=True)
class Steps:
    """Time each step took, of one rank."""

    bare: list[Spent] = field(default_factory=list)
    full: list[Spent] = field(default_factory=list)
    agreement: list[Spent] = field(default_factory=list)
    metrics: list[Spent] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        """Return the medians in milliseconds."""
        return {
            f"{name}_{kind}_ms": round(
                1000 * median(getattr(spent, kind) for spent in getattr(self, name)), 3
            )
            for name in Steps.__slots__
            for kind in Spent.__slots__
        }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_overhead", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each kind")
    parser.add_argument("--json", type=Path, default=ROOT / "build/training-overhead.json")
    parser.add_argument("--rank-to", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rank_to:
        return _rank(options.rank_to, options.steps)
    report = Report("benchmarks.training_overhead")
    by_rank = _measured(options.json.parent, options.steps)
    report.facts |= _facts(by_rank)
    _print(report.facts)
    share = report.facts["share"]
    report.check(
        "agreement-and-metrics",
        expected=f"below {MAX_SHARE:.1%} of the CPU time of a bare step",
        actual=f"{share:.3%}",
        ok=share < MAX_SHARE,
    )
    return report.finish(options.json)


def _measured(folder: Path, steps: int) -> list[dict[str, float]]:
    """Return what each rank measured: medians in milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = [folder / f"training-overhead-{rank}.json" for rank in range(RANKS)]
    common = {"WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "--steps", str(steps), "--rank-to", str(path)],
            env=os.environ
            | {name: str(value) for name, value in common.items()}
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank, path in enumerate(paths)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit("a rank failed; it says above why")
    by_rank = [json.loads(path.read_bytes()) for path in paths]
    for path in paths:
        path.unlink()
    return by_rank


def _rank(path: Path, steps: int) -> int:
    with joined_world(os.environ) as world, Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        taken = _steps(world, steps)
    path.write_text(json.dumps(taken.medians()))
    return 0


def _steps(world: World, steps: int) -> Steps:
    agreement = SometimesAgreed(StopRequest())
    meter = Meter(None)
    trainer = _trainer(world, agreement, meter)
    reporter = Reporter(CONFIG, world=world, meter=meter, checkpointer=None)
    taken = Steps()
    for step in range(1, WARM_UP + 2 * steps + 1):
        agreement.on, agreement.spent = step % 2 == 0, Spent()
        whole, metrics = Spent(), Spent()
        with whole.counted():
            trainer.run(range(step, step + 1))
            if agreement.on:
                with metrics.counted():
                    trainer.report(step, reporter)
        if step <= WARM_UP:
            continue
        (taken.full if agreement.on else taken.bare).append(whole)
        if agreement.on:
            taken.agreement.append(agreement.spent)
            taken.metrics.append(metrics)
    return taken


def _trainer(world: World, agreement: Agreement, meter: Meter) -> Trainer:
    model = make_model(CONFIG, world)
    share, length = CONFIG.batch_size // world.size, CONFIG.shape.sequence_length
    tokens = torch.randint(
        CONFIG.text_shape.vocabulary, (share, length + 1), generator=torch.Generator().manual_seed(world.rank)
    )
    return Trainer(
        CONFIG,
        world=world,
        model=model,
        optimizer=make_optimizer(model, CONFIG),
        batches=OneBatch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()),
        agreement=agreement,
        meter=meter,
        trace=Trace(CONFIG, world=world, env={}),
    )


def _facts(by_rank: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return shares of a bare step, of the rank that pays most."""
    return {
        "share": max(_share(medians, "cpu") for medians in by_rank),
        "share_with_waits": max(_share(medians, "passed") for medians in by_rank),
        "ratio_of_steps": max(medians["full_passed_ms"] / medians["bare_passed_ms"] for medians in by_rank),
        "ranks": list(by_rank),
    }


def _share(medians: dict[str, float], kind: str) -> float:
    return (medians[f"agreement_{kind}_ms"] + medians[f"metrics_{kind}_ms"]) / medians[f"bare_{kind}_ms"]


def _print(facts: dict[str, Any]) -> None:
    for rank, row in enumerate(facts["ranks"]):
        for kind, title in (("cpu", "CPU time"), ("passed", "time that passes")):
            print(
                f"rank {rank}, {title}: a bare step {row[f'bare_{kind}_ms']:.1f} ms, inside agreement "
                f"{row[f'agreement_{kind}_ms']:.3f} ms, inside metrics {row[f'metrics_{kind}_ms']:.3f} ms"
            )
    print(
        f"CPU time inside the calls: {facts['share']:.3%} of a bare step; with the wait for the slower rank "
        f"{facts['share_with_waits']:.3%}; a step with them takes {facts['ratio_of_steps']:.4f} times as long"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
