"""What agreement and metrics cost of a training step: two ranks, the program's own trainer and reporter.

Every other step goes without votes, metric lines and their reading of the device, so both kinds see the same
machine. The figure that is checked is the time inside those calls, as the host sees it, against a bare step:
the difference of the two kinds of steps has it too, but on a shared machine it drowns in noise.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from trainmaster_client.report import Report

from training.agreement import Agreement, Decision
from training.bench.modes import OneBatch
from training.config import TrainConfig
from training.job import make_model
from training.loop import Trainer
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.options.choices import Precision
from training.preempt import StopRequest
from training.ranks.world import World, joined_world

ROOT = Path(__file__).resolve().parents[1]
RANKS = 2
MAX_SHARE = 0.005
STEPS = 40
"""Of each kind."""
WARM_UP = 4
CONFIG = TrainConfig(
    preset="tiny", sequence_length=512, batch_size=16, precision=Precision.FP32, steps=10 * STEPS, lr=3e-4
)
"""About as long a step as GPUs take for a large model: half a second and more. A metric line every step."""


class SometimesAgreed(Agreement):
    """Votes while it is on, and adds up the time its caller spends."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__(stop)
        self.on, self.seconds = True, 0.0

    def begin(self, *, save: bool = False, seconds_needed: Callable[[], float] | None = None) -> None:
        if self.on:
            began = time.perf_counter()
            super().begin(save=save, seconds_needed=seconds_needed)
            self.seconds += time.perf_counter() - began

    def settled(self) -> Decision:
        if not self.on:
            return Decision(stop=False, save=False, seconds_left=0.0)
        began = time.perf_counter()
        decision = super().settled()
        self.seconds += time.perf_counter() - began
        return decision


@dataclass(slots=True)
class Seconds:
    """By step, of one rank."""

    bare: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)
    metrics: list[float] = field(default_factory=list)


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
        expected=f"below {MAX_SHARE:.1%} of a bare step",
        actual=f"{share:.3%}",
        ok=share < MAX_SHARE,
    )
    return report.finish(options.json)


def _measured(folder: Path, steps: int) -> list[dict[str, list[float]]]:
    """What each rank measured."""
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
    found = [json.loads(path.read_bytes()) for path in paths]
    for path in paths:
        path.unlink()
    return found


def _rank(path: Path, steps: int) -> int:
    with joined_world(os.environ) as world, Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        seconds = _steps(world, steps)
    path.write_text(json.dumps({name: getattr(seconds, name) for name in Seconds.__slots__}))
    return 0


def _steps(world: World, steps: int) -> Seconds:
    agreement = SometimesAgreed(StopRequest())
    meter = Meter(None)
    trainer = _trainer(world, agreement, meter)
    reporter = Reporter(CONFIG, world=world, meter=meter, checkpointer=None)
    seconds = Seconds()
    for step in range(1, WARM_UP + 2 * steps + 1):
        agreement.on, agreement.seconds = step % 2 == 0, 0.0
        began = time.perf_counter()
        trainer.run(range(step, step + 1))
        trained = time.perf_counter()
        if agreement.on:
            trainer.report(step, reporter)
        ended = time.perf_counter()
        if step > WARM_UP:
            (seconds.full if agreement.on else seconds.bare).append(ended - began)
            if agreement.on:
                seconds.agreement.append(agreement.seconds)
                seconds.metrics.append(ended - trained)
    return seconds


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
        trace=Trace(at=0, world=world, env={}),
    )


def _facts(by_rank: Sequence[dict[str, list[float]]]) -> dict[str, Any]:
    """The share is that of the rank that pays most."""
    shares = [(median(one["agreement"]) + median(one["metrics"])) / median(one["bare"]) for one in by_rank]
    return {
        "steps": len(by_rank[0]["bare"]),
        "share": max(shares),
        "ratio_of_steps": max(median(one["full"]) / median(one["bare"]) for one in by_rank),
        "ranks": [
            {f"{name}_ms": round(1000 * median(values), 3) for name, values in one.items()} for one in by_rank
        ],
    }


def _print(facts: dict[str, Any]) -> None:
    for rank, one in enumerate(facts["ranks"]):
        print(
            f"rank {rank}: a bare step {one['bare_ms']:.1f} ms, one with votes and metrics "
            f"{one['full_ms']:.1f} ms, of these {one['agreement_ms']:.3f} ms inside agreement and "
            f"{one['metrics_ms']:.3f} ms inside metrics"
        )
    print(
        f"with / bare: {facts['ratio_of_steps']:.4f}; inside the calls: {facts['share']:.3%} of a bare step"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
