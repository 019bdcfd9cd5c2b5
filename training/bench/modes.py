"""Modes of one model: how fast a model trains on this machine, eager and compiled.

It times the program's own training step. The batch lies on the device, and the host waits for the device
once a lap. A job does not need this module.
"""

import gc
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from trainmaster_client.report import Report

from training.agreement import Agreement
from training.config import TrainConfig
from training.data import seed_of
from training.errors import ConfigError, TrainingError
from training.job import make_model
from training.loop import Trainer
from training.metrics import Speed
from training.monitoring.goodput import Meter
from training.monitoring.report import Trace, yardstick
from training.optim import make_optimizer
from training.options.choices import Compile, Precision
from training.options.reader import described, option, paired, read
from training.preempt import StopRequest
from training.ranks.devices import this_processor
from training.ranks.world import World, joined_world

_GIB = 2**30


class Mode(StrEnum):
    EAGER = "eager"
    COMPILED = "compiled"


_COMPILE = {Mode.EAGER: Compile.NONE, Mode.COMPILED: Compile.INDUCTOR}
_FLOORS = {Mode.EAGER: 33.0, Mode.COMPILED: 45.0}
"""Percent MFU of llama-1b with 4,096 tokens in bf16 on one H100 or H200. For comparison: a 1.3B model without
compile has 41 (mosaicml/llm-foundry, scripts/train/benchmarking), torchtitan's 8B 33 and compiled 39
(benchmarks/llama3_h100_202412), both on 8 H100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    modes: str = option("eager,compiled", "which of eager and compiled")
    warm_up: int = option(3, "steps before the clock starts", at_least=1)
    lap: int = option(5, "steps of a lap", at_least=1)
    laps: int = option(3, "laps; the median counts", at_least=1)
    json: str = option("build/bench.json", "where the report goes")

    @property
    def chosen(self) -> list[Mode]:
        try:
            return [Mode(word) for word in self.modes.split(",")]
        except ValueError as error:
            raise ConfigError([f"modes must be eager, compiled or both, not {self.modes!r}"]) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    mode: Mode
    first_seconds: float
    """Of the warm-up, with compiling."""
    laps: Sequence[float]
    """Seconds of a step, by lap."""
    cpu_laps: Sequence[float]
    """CPU seconds of this process, likewise: what a machine that others use, too, blurs less."""
    speed: Speed
    """By the median lap."""
    losses: tuple[float, float]
    """Of the first step and the last."""
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class OneBatch:
    """The same for every step: what is measured is training, not data."""

    inputs: Tensor
    targets: Tensor

    def at(self, _step: int) -> tuple[Tensor, Tensor]:
        return self.inputs, self.targets


def main(arguments: Sequence[str]) -> int:
    if "--help" in arguments:
        print(f"{described(BenchOptions)}\nand the options of train.py, but steps")
        return 0
    try:
        config, options = _read(arguments)
        with joined_world(os.environ, join_seconds=config.join_seconds) as world:
            report = Report("training.bench")
            found = [measured(config, options, world, mode) for mode in options.chosen]
            if not world.is_first:
                return 0
            report.facts |= facts(config, world, found)
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(report.facts))
    check(report, config, found)
    return report.finish(Path(options.json))


def _read(arguments: Sequence[str]) -> tuple[TrainConfig, BenchOptions]:
    """The options of this program, and those of training."""
    texts, problems = paired(arguments)
    names = {one.name for one in fields(BenchOptions)}
    own, unread = read(BenchOptions, {name: text for name, text in texts.items() if name in names}, {})
    if problems + unread:
        raise ConfigError(problems + unread)
    options = BenchOptions(**own)
    on_gpu = {"preset": "llama-1b"} if torch.cuda.is_available() and "model_config" not in texts else {}
    rest = on_gpu | {"lr": "3e-4"} | {name: text for name, text in texts.items() if name not in names}
    rest["steps"] = str(options.warm_up + options.lap * options.laps)
    return TrainConfig.from_arguments([f"--{name}={text}" for name, text in rest.items()], {}), options


def measured(config: TrainConfig, options: BenchOptions, world: World, mode: Mode) -> Measured:
    trainer = _trainer(replace(config, compile=_COMPILE[mode]), world)
    began = time.perf_counter()
    trainer.run(range(1, 2))
    first_loss = trainer.loss()  # waits for the device
    trainer.run(range(2, options.warm_up + 1))
    trainer.loss()
    first_seconds = time.perf_counter() - began
    laps = [_lap(trainer, options, number) for number in range(options.laps)]
    seconds = statistics.median(seconds for seconds, _ in laps)
    found = Measured(
        mode=mode,
        first_seconds=first_seconds,
        laps=[seconds for seconds, _ in laps],
        cpu_laps=[cpu_seconds for _, cpu_seconds in laps],
        speed=yardstick(config, world).speed(seconds),
        losses=(first_loss, trainer.loss()),
        memory_bytes=world.accelerator.peak_memory(world.device),
    )
    del trainer
    forget(world.device)
    return found


def _trainer(config: TrainConfig, world: World) -> Trainer:
    model = make_model(config, world)
    share, length = config.batch_size // world.size, config.shape.sequence_length
    if share * world.size != config.batch_size:
        raise ConfigError([f"batch_size {config.batch_size} does not divide by {world.size} ranks"])
    source = torch.Generator().manual_seed(seed_of(config.seed, "bench", world.rank))
    tokens = torch.randint(config.text_shape.vocabulary, (share, length + 1), generator=source).to(
        world.device
    )
    return Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=OneBatch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()),
        agreement=Agreement(StopRequest()),
        meter=Meter(None),
        trace=Trace(config, world=world, env={}),
    )


def _lap(trainer: Trainer, options: BenchOptions, number: int) -> tuple[float, float]:
    """Seconds and CPU seconds of a step; the host waits for the device at the end alone."""
    first = options.warm_up + number * options.lap + 1
    began, cpu_began = time.perf_counter(), time.process_time()
    trainer.run(range(first, first + options.lap))
    trainer.loss()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return seconds / options.lap, cpu_seconds / options.lap


def forget(device: torch.device) -> None:
    """What the next mode must not inherit."""
    torch.compiler.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def facts(config: TrainConfig, world: World, found: Sequence[Measured]) -> dict[str, Any]:
    gauge = yardstick(config, world)
    return {
        "device": torch.cuda.get_device_name(world.device)
        if world.device.type == "cuda"
        else this_processor().name,
        "ranks": world.size,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "peak": None if gauge.peak is None else asdict(gauge.peak),
        "preset": config.model_name,
        "sequence_length": config.shape.sequence_length,
        "batch_size": config.batch_size,
        "precision": config.precision,
        "activation_checkpointing": config.activation_checkpointing,
        "flops_per_token": gauge.flops_per_token,
        "modes": [
            {
                "mode": one.mode,
                "step_seconds": one.laps,
                "step_cpu_seconds": one.cpu_laps,
                "warm_up_seconds": one.first_seconds,
                **asdict(one.speed),
                "memory_gib": one.memory_bytes / _GIB,
                "losses": one.losses,
            }
            for one in found
        ],
    }


def table(told: Mapping[str, Any]) -> str:
    peak = told["peak"]
    against = f"{peak['tflops']:g} TFLOP/s dense bf16 ({peak['source']})" if peak else "no known peak"
    what = f"{told['sequence_length']} tokens, batch {told['batch_size']}, {told['precision']}"
    where = f"{told['ranks']} x {told['device']}, {told['threads']} threads, torch {told['torch']}"
    speed_head = f"{'mode':10}{'tokens/s':>12}{'ms/step':>10}{'CPU ms':>10}{'TFLOP/s':>10}{'MFU %':>8}"
    head = f"{speed_head}{'GiB':>8}{'warm-up s':>11}"
    lines = [f"{told['preset']}, {what}", f"{where}; {against}", head]
    for one in told["modes"]:
        mfu = "-" if one["mfu"] is None else f"{one['mfu']:.1f}"
        step_ms = 1000 * statistics.median(one["step_seconds"])
        cpu_ms = 1000 * statistics.median(one["step_cpu_seconds"])
        lines.append(
            f"{one['mode']:10}{one['tok_s']:12.1f}{step_ms:10.1f}{cpu_ms:10.1f}{one['tflops_gpu']:10.2f}{mfu:>8}"
            f"{one['memory_gib']:8.1f}{one['warm_up_seconds']:11.1f}"
        )
    return "\n".join(lines)


def check(report: Report, config: TrainConfig, found: Sequence[Measured]) -> None:
    for one in found:
        before, after = one.losses
        report.check(
            f"{one.mode}-learns",
            expected=f"a loss below that of the first step, {before:.4f}",
            actual=round(after, 4),
            ok=after < before,
        )
        _check_floor(report, config, one)


def _check_floor(report: Report, config: TrainConfig, one: Measured) -> None:
    floor = _FLOORS[one.mode]
    expected = f"at least {floor:g} % MFU"
    meant = (config.preset, config.shape.sequence_length, config.precision) == (
        "llama-1b",
        4096,
        Precision.BF16,
    )
    if one.speed.mfu is None:
        report.skip(f"{one.mode}-mfu", expected=expected, reason="needs a GPU whose bf16 peak is known")
    elif not meant:
        report.skip(f"{one.mode}-mfu", expected=expected, reason="is for llama-1b, 4096 tokens, bf16")
    else:
        mfu = round(one.speed.mfu, 1)
        report.check(f"{one.mode}-mfu", expected=expected, actual=f"{mfu} %", ok=mfu >= floor)
