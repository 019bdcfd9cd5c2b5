"""Loops with Accelerate: ``for step, batch in PreemptibleLoop(accelerator, folder, ...).batches(loader)``."""

import os
from collections.abc import Iterable, Iterator
from itertools import count
from math import ceil
from typing import Any

import torch
from accelerate import Accelerator

from training.adapters.attempts import KEPT, Attempt, newest_whole, step_of


class PreemptibleLoop:
    """Make it when the accelerator has prepared everything.

    Saves and leaves with 143 after the step in which SIGTERM came, and every ``save_every`` steps besides.
    """

    def __init__(
        self, accelerator: Accelerator, folder: str | os.PathLike[str], *, steps: int, save_every: int = 0
    ) -> None:
        self._accelerator, self._folder, self._steps, self._every = accelerator, folder, steps, save_every

    def batches(self, loader: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """(step, batch) of the steps that are left, over as many epochs as it takes; resumes first.

        Under ``accelerator.accumulate`` a step has several batches, and ends when gradients are synchronised.
        """
        checkpoint = newest_whole(self._folder)
        if checkpoint is not None:
            self._accelerator.load_state(checkpoint)
        done = step_of(checkpoint)
        attempt = Attempt(self._folder, step=done, steps=self._steps)
        if attempt.is_asked_to_stop():
            attempt.leave(done)
        for batch in self._batches_from(loader, done):
            if done == self._steps:
                break
            yield done + 1, batch
            if self._accelerator.sync_gradients:
                done += 1
                self._after(done, attempt)
        attempt.completed(done)

    def _batches_from(self, loader: Any, done: int) -> Iterator[Any]:
        a_step = self._accelerator.gradient_accumulation_steps
        steps_an_epoch = ceil(len(loader) / a_step)  # the last one may have fewer batches
        first, skipped = done // steps_an_epoch, done % steps_an_epoch * a_step
        for epoch in count(first):
            if hasattr(loader, "set_epoch"):
                loader.set_epoch(epoch)
            if epoch == first and skipped > 0:
                numbers = torch.get_rng_state()
                rest = iter(self._accelerator.skip_first_batches(loader, skipped))
                batch = next(rest)
                # To begin an epoch draws a number, and this one has begun before.
                torch.set_rng_state(numbers)
                yield batch
                yield from rest
            else:
                yield from loader

    def _after(self, done: int, attempt: Attempt) -> None:
        is_due = self._every > 0 and done % self._every == 0
        if attempt.is_asked_to_stop() or is_due or done == self._steps:
            name = f"step-{done:08}"
            self._accelerator.save_state(str(attempt.begin_save(name)))
            attempt.saved(name, step=done, keep=KEPT)
