"""The program's loop beside nanoGPT's, of the same text model: CPU seconds of a step (paired_loops.py)."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from trainmaster_client.report import Report

from benchmarks.paired_loops import compared, own_loop, plain_loop
from benchmarks.training.bench.modes import OneBatch
from training.config import TrainConfig
from training.config.choices import Precision
from training.data.batches import Batch
from training.ranks.world import World, joined_world

ROOT = Path(__file__).resolve().parents[1]
MAX_RATIO = 1.05
STEPS = {128: 12, 512: 3}
"""Steps of a round by the tokens of a sequence: rounds take about the same time."""
ROUNDS = 31


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_loop", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each loop (%(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "build/training-loop.json")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    report = Report("benchmarks.training_loop")
    with joined_world(os.environ) as world:
        results = {tokens: _compared(world, tokens, options.rounds) for tokens in STEPS}
    report.facts |= {"batch_size": TrainConfig().batch_size, "by_tokens": results}
    for tokens, loops in results.items():
        print(
            f"{tokens} tokens: a step of the plain loop takes {loops['plain_ms']:.2f} ms of CPU time, one of "
            f"this loop {loops['ours_ms']:.2f} ms, ratio {loops['ratio']:.3f} (rounds {loops['ratios']})"
        )
        report.check(
            f"step-of-{tokens}-tokens",
            expected=f"at most {MAX_RATIO} times the CPU time of the plain loop",
            actual=f"{loops['ratio']:.3f}",
            ok=loops["ratio"] <= MAX_RATIO,
        )
    return report.finish(options.json)


def _compared(world: World, tokens: int, rounds: int) -> dict[str, Any]:
    """Measure CPU milliseconds of a step of each; the ratio is the median of neighbouring rounds."""
    config = TrainConfig(
        sequence_length=tokens, precision=Precision.FP32, steps=1_000_000, checkpoint_every=1_000_000
    )
    drawn = torch.Generator().manual_seed(1)
    shape = (config.batch_size, tokens + 1)
    drawn_tokens = torch.randint(config.text_shape.vocabulary, shape, generator=drawn)
    batch = OneBatch(drawn_tokens[:, :-1].contiguous(), drawn_tokens[:, 1:].contiguous())
    plain, ours = plain_loop(config, batch, _loss), own_loop(config, world, batch)
    return compared(plain, ours, steps=STEPS[tokens], rounds=rounds)


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    inputs, targets = batch
    return cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
