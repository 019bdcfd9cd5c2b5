"""A vision transformer in the program's loop beside a plain loop of the same module; and decoding.

Rounds of both loops alternate, so both see the same machine, and CPU seconds are compared, not the clock:
other programs on the machine slow both down. The plain loop is what a tutorial has: forward, loss, backward,
AdamW, the gradients clipped, the loss read at each step. Decoding is of JPEG files of 500 x 375 pixels, as in
ImageNet, cropped to 224.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import cross_entropy, interpolate
from trainmaster_client.report import Report

from training.agreement import Agreement
from training.config import TrainConfig
from training.data.batches import Batch
from training.job import make_model
from training.loop import Trainer
from training.models.families import model_of, open_data
from training.models.init import initialise
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.options.choices import Precision
from training.preempt import StopRequest
from training.ranks.world import World, joined_world
from training.vision.pictures import Draw, View, decoded

ROOT = Path(__file__).resolve().parents[1]
LEAST_RATIO = 0.95
_BATCH, _ROUNDS, _STEPS, _PICTURES = 16, 9, 1, 64


class _Same:
    """The batches of a few steps, again and again: what is compared is the loops, not the reading."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches

    def at(self, step: int) -> Batch:
        return self._batches[step % len(self._batches)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vision", description=__doc__)
    parser.add_argument("--model", default="vit-tiny", metavar="PRESET")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each loop (%(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "build/vision.json")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    report = Report("benchmarks.vision")
    with joined_world(os.environ) as world:
        loops = _loops(world, options.model, options.rounds)
    report.facts |= {"model": options.model, "cpus": os.cpu_count(), "loops": loops, "decoding": _decoding()}
    print(
        f"{options.model}, batch {_BATCH}, one thread, images a CPU second: plain loop {loops['plain']:.2f}, "
        f"this loop {loops['ours']:.2f}, ratio {loops['ratio']:.3f} (rounds {loops['ratios']})"
    )
    for one in report.facts["decoding"]:
        print(f"decoding with {one['workers']} {one['kind']}: {one['per_second']:.0f} images/s")
    report.check(
        "loop",
        expected=f"at least {LEAST_RATIO} of the plain loop",
        actual=f"{loops['ratio']:.3f}",
        ok=loops["ratio"] >= LEAST_RATIO,
    )
    return report.finish(options.json)


def _loops(world: World, preset: str, rounds: int) -> dict[str, Any]:
    """Images a CPU second of each, the median of rounds; the ratio is that of neighbouring rounds."""
    config = TrainConfig(
        preset=preset,
        precision=Precision.FP32,
        batch_size=_BATCH,
        steps=10_000,
        lr=3e-4,
        checkpoint_every=100_000,
    )
    source = open_data(config, {}).batches(world)
    same = _Same([source.at(step) for step in range(1, _STEPS + 1)])
    runs = {"plain": _plain(config, same), "ours": _ours(config, world, same)}
    for run in runs.values():
        run(1)
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        order = list(runs) if number % 2 else list(runs)[::-1]
        for name in order:
            began = time.process_time()
            runs[name](_STEPS)
            found[name].append(_BATCH * _STEPS / (time.process_time() - began))
    ratios = [ours / plain for ours, plain in zip(found["ours"], found["plain"], strict=True)]
    return {
        "ratio": median(ratios),
        "ratios": [round(one, 3) for one in ratios],
        **{name: median(values) for name, values in found.items()},
    }


def _plain(config: TrainConfig, batches: _Same) -> Callable[[int], None]:
    model = model_of(config.shape)
    initialise(model, seed=config.seed, layers=config.shape.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)

    def run(steps: int) -> None:
        for step in range(steps):
            images, labels = batches.at(step)
            loss = cross_entropy(model(images), labels.flatten())
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            assert loss.item() > 0

    return run


def _ours(config: TrainConfig, world: World, batches: _Same) -> Callable[[int], None]:
    """With its votes and its metric lines, which go nowhere."""
    model, meter = make_model(config, world), Meter(None)
    trainer = Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=batches,
        agreement=Agreement(StopRequest()),
        meter=meter,
        trace=Trace(at=0, world=world, env={}),
    )
    quiet = Reporter(config, world=world, meter=meter, checkpointer=None)
    done = [0]

    def run(steps: int) -> None:
        for _ in range(steps):
            done[0] += 1
            trainer.run(range(done[0], done[0] + 1))
            quiet._metrics(done[0], trainer.loss(), 1.0, config.lr)  # noqa: SLF001  the line, unprinted

    return run


def _decoding() -> list[dict[str, Any]]:
    """One worker and two, as threads and as processes, which send the pixels back."""
    source = torch.Generator().manual_seed(1)
    cells = torch.rand(1, 3, 47, 63, generator=source)
    pixels = (255 * interpolate(cells, size=(375, 500), mode="bicubic").clamp(0, 1)).to(torch.uint8)
    written = BytesIO()
    Image.fromarray(pixels[0].permute(1, 2, 0).contiguous().numpy()).save(written, "JPEG", quality=90)
    content = written.getvalue()
    found = []
    for workers in (1, 2):
        spawned = partial(ProcessPoolExecutor, mp_context=get_context("forkserver"))
        for kind, pool in (("threads", ThreadPoolExecutor), ("processes", spawned)):
            found.append({"workers": workers, "kind": kind, **_decoded_by(pool(workers), content)})
    return found


def _decoded_by(pool: Executor, content: bytes) -> dict[str, float]:
    with pool:
        list(pool.map(_one, [content] * 4, range(4)))  # libraries are loaded
        began = time.perf_counter()
        list(pool.map(_one, [content] * _PICTURES, range(_PICTURES)))
        return {"per_second": _PICTURES / (time.perf_counter() - began)}


def _one(content: bytes, number: int) -> Tensor:
    torch.set_num_threads(1)
    return decoded(content, View(side=224, draw=Draw.of(0, number, 0)), told="a benchmark")


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
