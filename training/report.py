"""Prints the metric lines of an attempt, from the first rank alone."""

import resource
from collections.abc import Callable
from pathlib import Path

import torch

from training.config import TrainConfig
from training.loop import StepEnd
from training.meter import Meter
from training.metrics import StepMetrics
from training.metrics_file import MetricsFile
from training.models.llama import flops_per_token
from training.rates import Yardstick, peak_of
from training.trainer import Trainer
from training.world import World

_GIB = 2**30


class Reporter:
    def __init__(
        self,
        config: TrainConfig,
        *,
        world: World,
        trainer: Trainer,
        meter: Meter,
        newest_checkpoint: Callable[[], int],
    ) -> None:
        self._config, self._world, self._trainer, self._meter = config, world, trainer, meter
        self._newest_checkpoint = newest_checkpoint
        self._yardstick = yardstick(config, world)
        self._file = (
            MetricsFile(Path(config.metrics_file)) if config.metrics_file and world.is_first else None
        )
        self.loss: float | None = None
        """The newest one reported; None when the checkpoint was already of the last step."""

    def counted(self, train_step: Callable[[int], StepEnd]) -> Callable[[int], StepEnd]:
        """The same, and the meter hears of it."""

        def counted_step(step: int) -> StepEnd:
            end = train_step(step)
            if end.trained:
                self._meter.step_done()
            return end

        return counted_step

    def report(self, step: int) -> None:
        """Every rank calls. Beside saving the one place where the host waits for the device.

        Raises:
            NotFiniteError: After the metric line of the step that shows it.
        """
        self.loss = self._trainer.loss()
        metrics = self._metrics(step, self.loss)
        if self._file is not None:
            self._file.add(metrics)  # first: who kills the program for its line finds the record
        if self._world.is_first:
            print(metrics.line(), flush=True)
        self._trainer.check()

    def _metrics(self, step: int, loss: float) -> StepMetrics:
        grad_norm = self._trainer.grad_norm()
        lap = self._meter.lap()
        speed = self._yardstick.speed(lap.step_seconds)
        return StepMetrics(
            step=step,
            loss=loss,
            lr=self._trainer.lr(step),
            grad_norm=grad_norm,
            tokens=step * self._config.tokens_per_step,
            tok_s=speed.tok_s,
            tok_s_gpu=speed.tok_s_gpu,
            tflops_gpu=speed.tflops_gpu,
            mfu=speed.mfu,
            step_ms=1000 * lap.step_seconds,
            data_ms=1000 * lap.data_seconds,
            mem_gib=peak_memory_bytes(self._world.device) / _GIB,
            ckpt_step=self._newest_checkpoint(),
            ckpt_stall_ms=1000 * self._meter.checkpoint_stall,
            goodput=self._meter.goodput(),
        )


def yardstick(config: TrainConfig, world: World) -> Yardstick:
    name = torch.cuda.get_device_name(world.device) if world.device.type == "cuda" else ""
    return Yardstick(
        tokens_per_step=config.tokens_per_step,
        ranks=world.size,
        flops_per_token=flops_per_token(config.shape),
        peak=peak_of(name),
    )


def peak_memory_bytes(device: torch.device) -> int:
    """The most that was in use so far: of a GPU, or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB
