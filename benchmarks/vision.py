"""A vision transformer in the program's loop beside a plain loop of the same module; and decoding.

The loops take turns, as paired_loops.py says. Decoding is of JPEG files of 500 x 375 pixels, as in
ImageNet, cropped to 224.
"""

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate
from trainmaster_client.report import Report

from benchmarks.paired_loops import compared, own_loop, plain_loop
from training.config import TrainConfig
from training.config.choices import Precision
from training.data.batches import Batch
from training.families import open_data
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
    for decoding in report.facts["decoding"]:
        print(
            f"decoding with {decoding['workers']} {decoding['kind']}: {decoding['per_second']:.0f} images/s"
        )
    report.check(
        "loop",
        expected=f"at least {LEAST_RATIO} of the plain loop",
        actual=f"{loops['ratio']:.3f}",
        ok=loops["ratio"] >= LEAST_RATIO,
    )
    return report.finish(options.json)


def _loops(world: World, preset: str, rounds: int) -> dict[str, Any]:
    """Measure images a CPU second of each loop, median of rounds; the ratio is of neighbouring rounds."""
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
    loops = compared(
        plain_loop(config, same, _loss), own_loop(config, world, same), steps=_STEPS, rounds=rounds
    )
    rates = {name: 1000 * _BATCH / loops[f"{name}_ms"] for name in ("plain", "ours")}
    return {
        "ratio": 1 / loops["ratio"],
        "ratios": [round(1 / value, 3) for value in loops["ratios"]],
        **rates,
    }


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    images, labels = batch
    return cross_entropy(model(images), labels.flatten())


def _decoding() -> list[dict[str, Any]]:
    """Measure one worker and two, as threads and as processes, which send the pixels back."""
    source = torch.Generator().manual_seed(1)
    cells = torch.rand(1, 3, 47, 63, generator=source)
    pixels = (255 * interpolate(cells, size=(375, 500), mode="bicubic").clamp(0, 1)).to(torch.uint8)
    written = BytesIO()
    Image.fromarray(pixels[0].permute(1, 2, 0).contiguous().numpy()).save(written, "JPEG", quality=90)
    content = written.getvalue()
    rates = []
    for workers in (1, 2):
        spawned = partial(ProcessPoolExecutor, mp_context=get_context("forkserver"))
        for kind, pool in (("threads", ThreadPoolExecutor), ("processes", spawned)):
            rates.append({"workers": workers, "kind": kind, **_decoded_by(pool(workers), content)})
    return rates


def _decoded_by(pool: Executor, content: bytes) -> dict[str, float]:
    with pool:
        list(pool.map(_one, [content] * 4, range(4)))  # libraries are loaded
        began = time.perf_counter()
        list(pool.map(_one, [content] * _PICTURES, range(_PICTURES)))
        return {"per_second": _PICTURES / (time.perf_counter() - began)}


def _one(content: bytes, number: int) -> Tensor:
    torch.set_num_threads(1)
    return decoded(content, View(side=224, draw=Draw.of(0, number, 0)), title="a benchmark")


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
