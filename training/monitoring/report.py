"""What an attempt prints, from the first rank alone; and what else is seen of its steps."""

from collections.abc import Mapping
from pathlib import Path

import torch

from training.checkpoint import Checkpointer
from training.config import TrainConfig
from training.data.batches import Batch, BatchSource
from training.launcher.watchdog import Heartbeat
from training.metrics import Event, MetricsFile, StepMetrics, Validation, Yardstick, event_line, peak_of
from training.model import flops_per_token
from training.monitoring.goodput import Meter
from training.monitoring.nonfinite import Hunt
from training.monitoring.profiling import Profiler, Wanted
from training.options.environment import output_data_dir
from training.ranks.devices import accelerator_of
from training.ranks.world import World

_GIB = 2**30


def tell(world: World, event: Event, **details: float | str | None) -> None:
    """Every rank may call."""
    if world.is_first:
        print(event_line(event, **details), flush=True)


class Reporter:
    """Prints the metric lines, and writes them into the metrics file."""

    def __init__(
        self, config: TrainConfig, *, world: World, meter: Meter, checkpointer: Checkpointer | None
    ) -> None:
        self._config, self._world, self._meter = config, world, meter
        self._checkpointer = checkpointer
        self._yardstick = yardstick(config, world)
        self._file = (
            MetricsFile(Path(config.metrics_file)) if config.metrics_file and world.is_first else None
        )

    def report(self, step: int, *, loss: float, grad_norm: float, lr: float) -> None:
        """When the device has done the step: the steps since the last call share its time."""
        metrics = self._metrics(step, loss, grad_norm, lr)
        if self._file is not None:
            self._file.add(metrics)  # first: who kills the program for its line finds the record
        if self._world.is_first:
            print(metrics.line(), flush=True)

    def evaluated(self, validation: Validation, *, seconds: float) -> None:
        if self._world.is_first:
            print(validation.line(seconds=seconds), flush=True)

    def _metrics(self, step: int, loss: float, grad_norm: float, lr: float) -> StepMetrics:
        lap = self._meter.lap()
        speed = self._yardstick.speed(lap.step_seconds)
        return StepMetrics(
            step=step,
            loss=loss,
            lr=lr,
            grad_norm=grad_norm,
            tokens=step * self._config.tokens_per_step,
            tok_s=speed.tok_s,
            tok_s_gpu=speed.tok_s_gpu,
            img_s=self._config.batch_size / lap.step_seconds if self._config.has_images else None,
            tflops_gpu=speed.tflops_gpu,
            mfu=speed.mfu,
            step_ms=1000 * lap.step_seconds,
            data_ms=1000 * lap.data_seconds,
            mem_gib=self._world.accelerator.peak_memory(self._world.device) / _GIB,
            ckpt_step=self._checkpointer.newest_step if self._checkpointer else 0,
            ckpt_stall_ms=1000 * self._meter.checkpoint_stall,
            goodput=self._meter.goodput(),
        )


def yardstick(config: TrainConfig, world: World) -> Yardstick:
    return Yardstick(
        tokens_per_step=config.tokens_per_step,
        ranks=world.size,
        flops_per_token=flops_per_token(config.shape, config.lora),
        peak=peak_of(world.accelerator.name(world.device)),
    )


def peak_memory_bytes(device: torch.device) -> int:
    """The most that was in use so far: of a GPU, or of this process."""
    return accelerator_of(device).peak_memory(device)


class Trace:
    """What is seen of steps besides their metrics: traces of some, what this rank is doing, bad values.

    ``at``: the step that is traced; 0: none. ``config``: what else is wanted.
    """

    def __init__(
        self, *, at: int, world: World, env: Mapping[str, str], config: TrainConfig | None = None
    ) -> None:
        self._world = world
        wanted = Wanted.by(config) if config else Wanted(at=at)
        self._profiler = Profiler(wanted, world=world, directory=output_data_dir(env))
        self._heart = Heartbeat(env, hang_seconds=config.hang_seconds if config else 0.0)
        self.hunt: Hunt | None = None
        """For values that are not finite."""
        if config:
            self._profiler.listen()

    def begin(self, step: int) -> None:
        self._heart.begins(step)
        if self.hunt is not None:
            self.hunt.begin()
        self._profiler.begin(step)

    def before_update(self, step: int) -> None:
        """Raises FoundNotFiniteError."""
        if self.hunt is not None:
            self.hunt.check(step)

    def end(self, step: int) -> None:
        self._world.accelerator.end_step()
        written = self._profiler.end(step)
        self._heart.ends()
        if written is not None:
            tell(self._world, Event.PROFILE, step=step, **written)

    def of_waits(self, batches: BatchSource) -> BatchSource:
        """The same batches: while one is waited for, the launcher knows."""
        return _Awaited(batches, self._heart)


class _Awaited:
    def __init__(self, batches: BatchSource, heart: Heartbeat) -> None:
        self._batches, self._heart = batches, heart

    def at(self, step: int) -> Batch:
        self._heart.waits_for_data()
        batch = self._batches.at(step)
        self._heart.has_data()
        return batch
