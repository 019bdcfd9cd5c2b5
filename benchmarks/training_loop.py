"""The program's loop beside a plain one of the same text model: CPU seconds of a step.

The plain loop is nanoGPT's: forward pass, loss, backward pass, the gradients clipped, AdamW, the loss read at
each step. The program's has all that a job has: votes, seeds, guards of values that are not finite, a metric
line each step. Rounds of both alternate, so both see the same machine, and CPU seconds are compared, not the
clock: other programs on the machine slow both down.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from trainmaster_client.report import Report

from training.agreement import Agreement
from training.bench.modes import OneBatch
from training.config import TrainConfig
from training.job import make_model
from training.loop import Trainer
from training.models.families import model_of
from training.models.init import initialise
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.options.choices import Precision
from training.preempt import StopRequest
from training.ranks.world import World, joined_world

ROOT = Path(__file__).resolve().parents[1]
MAX_RATIO = 1.05
STEPS = {128: 12, 512: 3}
"""Of a round, by the tokens of a sequence: rounds of about the same length."""
ROUNDS = 31
_WARM_UP = 3

Round = Callable[[int], None]
"""Trains so many steps."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_loop", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each loop (%(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "build/training-loop.json")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    report = Report("benchmarks.training_loop")
    with joined_world(os.environ) as world:
        found = {tokens: _compared(world, tokens, options.rounds) for tokens in STEPS}
    report.facts |= {"batch_size": TrainConfig().batch_size, "by_tokens": found}
    for tokens, one in found.items():
        print(
            f"{tokens} tokens: a step of the plain loop takes {one['plain_ms']:.2f} ms of CPU time, one of "
            f"this loop {one['ours_ms']:.2f} ms, ratio {one['ratio']:.3f} (rounds {one['ratios']})"
        )
        report.check(
            f"step-of-{tokens}-tokens",
            expected=f"at most {MAX_RATIO} times the CPU time of the plain loop",
            actual=f"{one['ratio']:.3f}",
            ok=one["ratio"] <= MAX_RATIO,
        )
    return report.finish(options.json)


def _compared(world: World, tokens: int, rounds: int) -> dict[str, Any]:
    """CPU milliseconds of a step of each; the ratio is the median of those of neighbouring rounds."""
    config = TrainConfig(
        sequence_length=tokens, precision=Precision.FP32, steps=1_000_000, checkpoint_every=1_000_000
    )
    drawn = torch.Generator().manual_seed(1)
    shape = (config.batch_size, tokens + 1)
    drawn_tokens = torch.randint(config.text_shape.vocabulary, shape, generator=drawn)
    batch = OneBatch(drawn_tokens[:, :-1].contiguous(), drawn_tokens[:, 1:].contiguous())
    runs = {"plain": _plain(config, batch), "ours": _ours(config, world, batch)}
    for run in runs.values():
        run(_WARM_UP)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    steps = STEPS[tokens]
    for number in range(rounds):
        for name in sorted(runs, reverse=bool(number % 2)):
            began = time.process_time()
            runs[name](steps)
            seconds[name].append((time.process_time() - began) / steps)
    ratios = [ours / plain for ours, plain in zip(seconds["ours"], seconds["plain"], strict=True)]
    return {
        "ratio": median(ratios),
        "ratios": [round(one, 3) for one in sorted(ratios)],
        **{f"{name}_ms": 1000 * median(values) for name, values in seconds.items()},
    }


def _plain(config: TrainConfig, batch: OneBatch) -> Round:
    model = model_of(config.shape)
    initialise(model, seed=config.seed, layers=config.shape.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95), fused=True)

    def run(steps: int) -> None:
        for step in range(steps):
            inputs, targets = batch.at(step)
            loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            assert loss.item() > 0

    return run


def _ours(config: TrainConfig, world: World, batch: OneBatch) -> Round:
    model, meter = make_model(config, world), Meter(None)
    trainer = Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=batch,
        agreement=Agreement(StopRequest()),
        meter=meter,
        reporter=Reporter(config, world=world, meter=meter, checkpointer=None),
        trace=Trace(at=0, world=world, env={}),
    )

    def run(steps: int) -> None:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            trainer.run(range(trainer.reached + 1, trainer.reached + 1 + steps))

    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
