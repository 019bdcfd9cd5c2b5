"""``python -m benchmarks.training.fp16_range``: what fp16 and bf16 keep of the gradients of a training.

A small language model is trained on the CPU, in fp32. At three steps the gradients of its weights, and those
of its logits, from which all others follow, are written to fp16 and to bf16 and counted: lost (it became 0),
shortened (subnormal: fewer digits than the type has) and infinite. Then the same for fp16 with the loss
scaled, by a power of two as a scaler has it, and the scaler of PyTorch is followed: it begins with 65536,
halves and drops the step where a gradient is infinite, and doubles after 2,000 steps.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from trainmaster_client.report import Report

from training.config import TrainConfig, read_config
from training.data.batches import Batches
from training.data.corpus import open_corpus
from training.job import make_model
from training.models.loss import cross_entropy
from training.optim import clip, make_optimizer, step_if_finite
from training.ranks.world import World, joined_world

FIRST_SCALE, GROWTH_STEPS = 2.0**16, 2000
"""PyTorch's defaults: torch.amp.GradScaler, init_scale and growth_interval."""
SCALES = (1.0, 2.0**10, FIRST_SCALE)
MOST_LOST_IN_BF16 = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Shares of the gradients that are not 0, by what becomes of them when a type stores them."""

    lost: float
    shortened: float
    infinite: float

    @classmethod
    def of(cls, gradients: Tensor, kind: torch.dtype, *, scale: float = 1.0) -> "Kept":
        exact = gradients[gradients != 0] * scale
        stored = exact.to(kind).float()
        number = max(1, exact.numel())
        subnormal = (stored != 0) & (stored.abs() < torch.finfo(kind).tiny)
        return cls(
            lost=int((stored == 0).sum()) / number,
            shortened=int(subnormal.sum()) / number,
            infinite=int(stored.isinf().sum()) / number,
        )

    def as_json(self) -> dict[str, float]:
        return {"lost": self.lost, "shortened": self.shortened, "infinite": self.infinite}


def dropped_steps(largest: Sequence[float]) -> int:
    """Count the steps that PyTorch's scaler would drop.

    Args:
        largest: Absolute value of each step's largest gradient, without a scale.
    """
    scale, good, dropped = FIRST_SCALE, 0, 0
    for value in largest:
        if value * scale > torch.finfo(torch.float16).max:
            scale, good, dropped = scale / 2, 0, dropped + 1
        else:
            good += 1
            if good == GROWTH_STEPS:
                scale, good = scale * 2, 0
    return dropped


@dataclass(slots=True)
class Seen:
    """Gradients of the first, middle and last step, and the absolute value of each step's largest."""

    weights: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)


def trained(config: TrainConfig, world: World) -> Seen:
    """Train, and return what was seen of its gradients."""
    model = make_model(config, world)
    optimizer = make_optimizer(model, config)
    batches = Batches(
        corpus=open_corpus(config, env={}),
        sequence_length=config.shape.sequence_length,
        size=config.batch_size,
        rank=0,
        ranks=1,
        seed=config.seed,
    )
    seen = Seen()
    for step in range(1, config.steps + 1):
        inputs, targets = batches.at(step)
        logits = model(inputs)
        logits.retain_grad()
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten())
        losses.mean(dtype=torch.float64).backward()  # type: ignore[no-untyped-call]  # torch's
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        weights = torch.cat([gradient.flatten() for gradient in gradients])
        seen.largest.append(float(max(weights.abs().max(), logits.grad.abs().max())))
        if step in {1, (config.steps + 1) // 2, config.steps}:
            seen.weights.append(weights)
            seen.logits.append(logits.grad.flatten().float())
        step_if_finite(optimizer, clip(model, config.grad_clip))
        optimizer.zero_grad()
    return seen


def measured(config: TrainConfig, world: World) -> dict[str, Any]:
    seen = trained(config, world)
    return {
        "preset": config.model_name,
        "steps": config.steps,
        "tokens": config.tokens_per_step,
        "weights": _kept(torch.cat(seen.weights)),
        "logits": _kept(torch.cat(seen.logits)),
        "dropped_steps": dropped_steps(seen.largest),
    }


def _kept(gradients: Tensor) -> dict[str, dict[str, float]]:
    rows = {f"fp16, scale {scale:g}": Kept.of(gradients, torch.float16, scale=scale) for scale in SCALES}
    rows["bf16"] = Kept.of(gradients, torch.bfloat16)
    return {name: row.as_json() for name, row in rows.items()}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.fp16_range", description=__doc__)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--json", type=Path, default=Path("build/fp16.json"))
    options = parser.parse_args(arguments)
    config = read_config(
        [
            f"--preset={options.preset}",
            f"--steps={options.steps}",
            f"--batch_size={options.batch_size}",
            "--precision=fp32",
            "--sequence_length=128",
        ],
        {},
    )
    report = Report("benchmarks.training.fp16_range")
    with joined_world(os.environ, join_seconds=60.0) as world:
        report.facts |= measured(config, world)
    _print(report.facts)
    _check(report)
    return report.finish(options.json)


def _print(facts: dict[str, Any]) -> None:
    print(f"{facts['preset']}, {facts['steps']} steps of {facts['tokens']:,} tokens")
    print(f"{'':8}{'':20}{'lost':>10}{'shortened':>11}{'infinite':>10}")
    for part in ("weights", "logits"):
        for name, row in facts[part].items():
            shares = f"{row['lost']:10.2%}{row['shortened']:11.2%}{row['infinite']:10.2%}"
            print(f"{part:8}{name:20}{shares}")
    print(f"steps that PyTorch's scaler drops: {facts['dropped_steps']}")


def _check(report: Report) -> None:
    for part in ("weights", "logits"):
        bf16, plain = report.facts[part]["bf16"], report.facts[part]["fp16, scale 1"]
        report.check(
            f"bf16-keeps-{part}",
            expected=f"at most {MOST_LOST_IN_BF16:g} of the gradients lost, none infinite",
            actual=f"{bf16['lost']:.2g}, {bf16['infinite']:.2g}",
            ok=bf16["lost"] <= MOST_LOST_IN_BF16 and bf16["infinite"] == 0,
        )
        report.check(
            f"fp16-loses-{part}",
            expected="more than bf16, lost or shortened",
            actual=f"{plain['lost'] + plain['shortened']:.2g}",
            ok=plain["lost"] + plain["shortened"] > bf16["lost"] + bf16["shortened"],
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
