"""Prints the loss lines of an attempt, from the first rank alone."""

import time

from training.config import TrainConfig
from training.metrics import Progress
from training.trainer import Trainer
from training.world import World


class Reporter:
    """The clock of tokens_per_s runs from its making."""

    def __init__(self, config: TrainConfig, *, world: World, trainer: Trainer, done: int) -> None:
        self._config, self._world, self._trainer = config, world, trainer
        self._reported, self._reported_at = done, time.perf_counter()
        self.loss: float | None = None
        """The newest one reported; None when the checkpoint was already of the last step."""

    def report(self, step: int) -> None:
        """Every rank calls. The one place where the host waits for the device."""
        self.loss = self._trainer.loss()
        now = time.perf_counter()
        tokens = (step - self._reported) * self._trainer.tokens_per_step
        progress = Progress(
            step=step,
            steps=self._config.steps,
            loss=self.loss,
            lr=self._trainer.lr(step),
            tokens_per_s=tokens / (now - self._reported_at),
        )
        self._reported, self._reported_at = step, now
        if self._world.is_first:
            print(progress.line(), flush=True)
