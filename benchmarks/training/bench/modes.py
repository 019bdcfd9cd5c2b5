"""Modes of one model: how fast a model trains on this machine, eager and compiled.

It times the program's own training step. The batch lies on the device, and the host waits for the device
once a lap. A job does not need this module.
"""

import gc
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from trainmaster_client.report import Report

from benchmarks.training.bench.figures import check_modes, modes_table
from training.config import TrainConfig, read_config
from training.config.choices import Compile
from training.config.reader import described, option, paired, read
from training.data import seed_of
from training.errors import ConfigError, TrainingError
from training.families import open_data
from training.job import make_model
from training.loop import Trainer
from training.models.precision import settled
from training.monitoring.goodput import Meter
from training.monitoring.report import Trace, yardstick
from training.optim import make_optimizer
from training.preemptible.agreement import Agreement
from training.preemptible.preempt import StopRequest
from training.ranks.devices import this_processor
from training.ranks.world import World, joined_world

_GIB = 2**30


class Mode(StrEnum):
    EAGER = "eager"
    COMPILED = "compiled"


_COMPILE = {Mode.EAGER: Compile.NONE, Mode.COMPILED: Compile.INDUCTOR}


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
        config, options = read_options(arguments)
        with joined_world(os.environ, join_seconds=config.join_seconds) as world:
            config, _ = settled(config, world)
            report = Report("benchmarks.training.bench")
            results = [{"mode": mode, **measured(config, options, world, mode)} for mode in options.chosen]
            if not world.is_first:
                return 0
            report.facts |= {**facts(config, world), "modes": results}
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(modes_table(report.facts))
    check_modes(report, report.facts)
    return report.finish(Path(options.json))


def read_options(arguments: Sequence[str]) -> tuple[TrainConfig, BenchOptions]:
    """Read the options of this program, and those of training."""
    texts, problems = paired(arguments)
    names = {option.name for option in fields(BenchOptions)}
    own, unread = read(BenchOptions, {name: text for name, text in texts.items() if name in names}, {})
    if problems + unread:
        raise ConfigError(problems + unread)
    options = BenchOptions(**own)
    on_gpu = {"preset": "llama-1b"} if torch.cuda.is_available() and "model_config" not in texts else {}
    rest = on_gpu | {"lr": "3e-4"} | {name: text for name, text in texts.items() if name not in names}
    rest["steps"] = str(options.warm_up + options.lap * options.laps)
    return read_config([f"--{name}={text}" for name, text in rest.items()], {}), options


def measured(config: TrainConfig, options: BenchOptions, world: World, mode: Mode) -> dict[str, Any]:
    """Measure seconds and CPU seconds of a step by lap, the speed of the median lap, losses, memory."""
    trainer = trainer_of(replace(config, compile=_COMPILE[mode]), world)
    began = time.perf_counter()
    trainer.run(range(1, 2))
    first_loss = trainer.loss()  # waits for the device
    trainer.run(range(2, options.warm_up + 1))
    trainer.loss()
    warm_up_seconds = time.perf_counter() - began  # with compiling
    laps = [_lap(trainer, options, number) for number in range(options.laps)]
    step_seconds, step_cpu_seconds = zip(*laps, strict=True)
    result = {
        "step_seconds": step_seconds,
        "step_cpu_seconds": step_cpu_seconds,
        "warm_up_seconds": warm_up_seconds,
        **asdict(yardstick(config, world).speed(statistics.median(step_seconds))),
        "memory_gib": world.accelerator.peak_memory(world.device) / _GIB,
        "losses": [first_loss, trainer.loss()],
    }
    del trainer
    forget(world.device)
    return result


def trainer_of(config: TrainConfig, world: World) -> Trainer:
    model = make_model(config, world)
    return Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=_one_batch(config, world),
        agreement=Agreement(StopRequest()),
        meter=Meter(None),
        trace=Trace(config, world=world, env={}),
    )


def _one_batch(config: TrainConfig, world: World) -> OneBatch:
    share = config.batch_size // world.size
    if share * world.size != config.batch_size:
        raise ConfigError([f"batch_size {config.batch_size} does not divide by {world.size} ranks"])
    if config.has_images:  # made up ones, of the model's size and classes
        images, labels = open_data(config, {}).batches(world).at(1)
        return OneBatch(images.to(world.device), labels.to(world.device))
    length = config.shape.sequence_length
    source = torch.Generator().manual_seed(seed_of(config.seed, "bench", world.rank))
    tokens = torch.randint(config.text_shape.vocabulary, (share, length + 1), generator=source).to(
        world.device
    )
    return OneBatch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def _lap(trainer: Trainer, options: BenchOptions, number: int) -> tuple[float, float]:
    """Return seconds and CPU seconds of a step; the host waits for the device only at the end."""
    first = options.warm_up + number * options.lap + 1
    began, cpu_began = time.perf_counter(), time.process_time()
    trainer.run(range(first, first + options.lap))
    trainer.loss()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return seconds / options.lap, cpu_seconds / options.lap


def forget(device: torch.device) -> None:
    """Clear what the next mode must not inherit."""
    torch.compiler.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def facts(config: TrainConfig, world: World) -> dict[str, Any]:
    gauge = yardstick(config, world)
    return {
        "device": device_name(world.device),
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
    }


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else this_processor().name
