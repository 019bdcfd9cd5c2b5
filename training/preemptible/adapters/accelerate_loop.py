"""Loops with Accelerate: ``for step, batch in PreemptibleLoop(accelerator, folder, ...).batches(loader)``."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from math import ceil
from typing import Any

from accelerate import Accelerator
from torch.utils.data import DataLoader

from training.preemptible.adapters.accelerate_data import base_of, keep_rates, on_this_width, width_of
from training.preemptible.adapters.attempts import KEPT, Attempt, newest_whole, step_of
from training.preemptible.adapters.carried import agreed, rank, read_carried, write_carried
from training.preemptible.adapters.placed_data import PlacedData, own_seed, workers_of
from training.preemptible.adapters.random_numbers import put_back, random_numbers
from training.preemptible.adapters.widths import DataWidth, check_workers
from training.preemptible.progress import Progress, width


class _StopInEvaluationError(BaseException):
    """Leaves an evaluation; no Exception, so that what the evaluation catches does not catch it."""


class PreemptibleLoop:
    """Trains with Accelerate. Make it when the accelerator has prepared everything.

    Saves and leaves with 143 after the step in which SIGTERM came, and every ``save_every`` steps besides.

    Args:
        steps: Optimizer steps of the whole job.
        evaluate: A number of steps, and the function that is called, with the step, each time so many are
            done. It iterates ``watched(loader)``, so that a stop is noticed within one batch; the next
            attempt makes up what was cut off.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        folder: str | os.PathLike[str],
        *,
        steps: int,
        save_every: int = 0,
        evaluate: tuple[int, Callable[[int], object]] | None = None,
    ) -> None:
        self._accelerator, self._folder, self._steps, self._every = accelerator, folder, steps, save_every
        self._evaluate_every = 0 if evaluate is None else evaluate[0]
        self._evaluate = None if evaluate is None else evaluate[1]
        self._digest: int | None = None
        self._epoch, self._seen = 0, 0
        """Place of the newest batch: its epoch, and the batches of that epoch up to and with it."""

    def batches(self, loader: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Yield (step, batch) of the steps that are left, over as many epochs as it takes; resumes first.

        Under ``accelerator.accumulate`` a step has several batches, and ends when gradients are synchronised.

        Raises:
            ValueError: The data cannot go on where they were; it says why and what to change.
        """
        checkpoint = newest_whole(self._folder)
        carried = read_carried(checkpoint)
        loader = self._placed(loader, carried)
        if checkpoint is not None:
            self._accelerator.load_state(checkpoint)
        self._done = done = step_of(checkpoint)
        self._resume_at(loader, done, carried)
        self._attempt = Attempt(self._folder, step=done, steps=self._steps)
        self._progress = Progress(done, width=width()) if rank() == 0 else None
        if self._attempt.is_asked_to_stop():
            self._attempt.leave(done)
        if carried is not None and carried["evaluation_due"]:
            self._make_up_evaluation(done)
        for batch in self._batches_from(loader):
            if done == self._steps:
                break
            yield done + 1, batch
            if self._accelerator.sync_gradients:
                done += 1
                self._after(done)
        self._attempt.completed(done)

    def watched(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Give an evaluation its batches, and leave it after the one in which SIGTERM came."""
        for batch in loader:
            yield batch
            if self._attempt.is_asked_to_stop():
                raise _StopInEvaluationError

    def _placed(self, loader: Any, carried: dict[str, Any] | None) -> Any:
        if getattr(loader, "use_stateful_dataloader", False):
            raise ValueError(
                "use_stateful_dataloader=True would skip a second time what this loop skips: leave it out of "
                "DataLoaderConfiguration"
            )
        self._width, self._workers = width_of(self._accelerator, loader), workers_of(base_of(loader))
        self._ranks_at_start, self._is_same_width = self._accelerator.num_processes, True
        if carried is not None:
            before = DataWidth(**carried["width"])
            check_workers(self._workers, before=carried["workers"])
            loader = on_this_width(self._accelerator, loader, before)
            self._ranks_at_start = carried["ranks_at_start"]
            self._is_same_width = self._width.ranks == before.ranks
            self._width = DataWidth(ranks=self._width.ranks, batch=before.batch)
            keep_rates(self._accelerator, self._ranks_at_start)
        base = base_of(loader)
        self._data: PlacedData | None = None
        if isinstance(base, DataLoader):
            own = None if carried is None else carried["data"]
            seed, generators = own or (agreed(own_seed(base)), None)
            self._data = PlacedData(base, seed=seed, rank=rank(), generator_seeds=generators)
            self._data_seeds = (seed, agreed(self._data.generator_seeds))
        return loader

    def _resume_at(self, loader: Any, done: int, carried: dict[str, Any] | None) -> None:
        if carried is not None:
            put_back(carried["numbers"])
            self._epoch, self._seen = carried["epoch"], carried["seen"]
            self._digest = carried["digest"] if self._is_same_width else None
        elif done:  # its checkpoint is of the time before places were carried
            a_step = self._accelerator.gradient_accumulation_steps
            steps_an_epoch = ceil(len(loader) / a_step)  # the last one may have fewer batches
            self._epoch, self._seen = done // steps_an_epoch, done % steps_an_epoch * a_step

    def _batches_from(self, loader: Any) -> Iterator[Any]:
        """Yield all batches from number ``_seen`` of epoch ``_epoch`` on, without an end."""
        numbers: dict[str, Any] | None = random_numbers()
        for epoch in count(self._epoch):
            is_resumed = epoch == self._epoch and self._seen > 0
            self._epoch, self._seen = epoch, self._seen if is_resumed else 0
            before = self._seen
            for batch in self._epoch_of(loader, skipped=self._seen):
                if numbers is not None:
                    # To begin an epoch may draw a number, and this one has begun before.
                    put_back(numbers)
                    numbers = None
                self._seen += 1
                yield batch
            if self._seen == before == 0:
                raise ValueError("the loader gave no batch in a whole epoch: give it data")

    def _epoch_of(self, loader: Any, *, skipped: int) -> Iterator[Any]:
        if hasattr(loader, "set_epoch"):
            loader.set_epoch(self._epoch)
        skips_unread = self._data is not None and self._data.can_skip_unread
        if self._data is not None:
            seen = skipped if skips_unread else 0
            self._data.begin(self._epoch, seen=seen, expected=(seen, self._digest))
        if skips_unread:
            yield from loader
        else:
            for at, batch in enumerate(loader, start=1):
                if at > skipped:
                    yield batch
                elif self._attempt.is_heard:  # to read up to the place may take long, and nothing is at stake
                    self._attempt.leave(self._done)

    def _after(self, done: int) -> None:
        if self._progress is not None:
            self._progress.reached(done, self._steps)
        is_stop = self._attempt.is_asked_to_stop()
        if self._evaluate_every and done % self._evaluate_every == 0:
            if is_stop:
                self._save(done, evaluation_due=True)
            before = random_numbers()
            try:
                self._evaluated(done)
            except _StopInEvaluationError:
                self._save(done, evaluation_due=True, numbers=before)
        is_due = self._every > 0 and done % self._every == 0
        if self._attempt.is_leaving or is_due or done == self._steps:
            self._save(done)

    def _evaluated(self, done: int) -> None:
        """Evaluate with random numbers aside: workers that persist draw in their first evaluation alone."""
        assert self._evaluate is not None
        before = random_numbers()
        self._evaluate(done)
        put_back(before)
        self._attempt.is_asked_to_stop()

    def _make_up_evaluation(self, done: int) -> None:
        """Evaluate as the attempt before would have; the checkpoint says it is due until the next save."""
        if self._evaluate is None:
            return
        try:
            self._evaluated(done)
        except _StopInEvaluationError:
            self._attempt.leave(done)
        if self._attempt.is_leaving:
            self._attempt.leave(done)

    def _save(
        self, done: int, *, evaluation_due: bool = False, numbers: dict[str, Any] | None = None
    ) -> None:
        """Save, and leave if that was asked for."""
        name = f"step-{done:08}"
        folder = self._attempt.begin_save(name)
        self._accelerator.save_state(str(folder))
        content = {
            "epoch": self._epoch,
            "seen": self._seen,
            "width": {"ranks": self._width.ranks, "batch": self._width.batch},
            "ranks_at_start": self._ranks_at_start,
            "workers": self._workers,
            "data": None if self._data is None else self._data_seeds,
            "digest": None if self._data is None else self._data.digest_after(self._seen),
            "evaluation_due": evaluation_due,
        }
        write_carried(folder, content, numbers=numbers)
        self._attempt.saved(name, step=done, keep=KEPT)
