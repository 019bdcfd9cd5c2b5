"""The program's loop beside a plain one of the same modules, in rounds that take turns, by CPU seconds.

So both see the same machine, and other programs on it slow both down. The plain loop is what a tutorial has:
forward pass, loss, backward pass, the gradients clipped, AdamW, the loss read at each step. The program's has
all that a job has: votes, seeds, guards of values that are not finite, a metric line each step.
"""

import os
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from training.config import TrainConfig
from training.data.batches import Batch, BatchSource
from training.families import model_of
from training.job import make_model
from training.loop import Trainer
from training.models.init import initialise
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.preemptible.agreement import Agreement
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

Round: TypeAlias = Callable[[int], None]
"""Trains so many steps."""
Loss: TypeAlias = Callable[[nn.Module, Batch], Tensor]
_WARM_UP = 3


def compared(plain: Round, ours: Round, *, steps: int, rounds: int) -> dict[str, Any]:
    """Measure CPU ms of a step of each; ``ratio`` is ours to plain, median of neighbouring rounds."""
    runs = {"plain": plain, "ours": ours}
    for run in runs.values():
        run(_WARM_UP)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in sorted(runs, reverse=bool(number % 2)):
            began = time.process_time()
            runs[name](steps)
            seconds[name].append((time.process_time() - began) / steps)
    ratios = [mine / bare for mine, bare in zip(seconds["ours"], seconds["plain"], strict=True)]
    return {
        "ratio": median(ratios),
        "ratios": [round(value, 3) for value in sorted(ratios)],
        **{f"{name}_ms": 1000 * median(values) for name, values in seconds.items()},
    }


def plain_loop(config: TrainConfig, batches: BatchSource, loss_of: Loss) -> Round:
    model = model_of(config.shape)
    initialise(model, seed=config.seed, layers=config.shape.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95), fused=True)

    def run(steps: int) -> None:
        for step in range(steps):
            loss = loss_of(model, batches.at(step))
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            assert loss.item() > 0

    return run


def own_loop(config: TrainConfig, world: World, batches: BatchSource) -> Round:
    """Make a round of the program's loop; its output is discarded."""
    model, meter = make_model(config, world), Meter(None)
    trainer = Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=batches,
        agreement=Agreement(StopRequest()),
        meter=meter,
        reporter=Reporter(config, world=world, meter=meter, checkpointer=None),
        trace=Trace(config, world=world, env={}),
    )

    def run(steps: int) -> None:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            trainer.run(range(trainer.reached + 1, trainer.reached + 1 + steps))

    return run
