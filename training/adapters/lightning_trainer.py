"""Lightning's Trainer: ``callbacks=[preemption]``, and ``fit(..., ckpt_path=preemption.newest)``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.utils.data import DataLoader

from training.adapters.attempts import KEPT, Attempt, newest_whole

_FILE = "model.ckpt"


class PreemptionCallback(Callback):  # type: ignore[misc]  # the library's types are not followed
    """Saves and leaves with 143 after the step in which SIGTERM came, and every ``every_n_steps`` besides.

    It takes SIGTERM from Lightning, which would leave without saving. Checkpoints of ModelCheckpoint are
    left alone; give it another folder.
    """

    def __init__(self, folder: str, *, every_n_steps: int = 0) -> None:
        self._folder, self._every = folder, every_n_steps

    @property
    def newest(self) -> str | None:
        found = newest_whole(self._folder)
        return None if found is None else str(Path(found) / _FILE)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """After Lightning's own handler has been set."""
        self._step = trainer.global_step
        steps = int(min(trainer.estimated_stepping_batches, 2**53))
        self._attempt = Attempt(self._folder, step=self._step, steps=steps)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step == self._step:
            return  # gradients are being accumulated: what was saved now would lack them
        self._step = trainer.global_step
        is_due = self._every > 0 and self._step % self._every == 0
        if self._attempt.is_asked_to_stop() or is_due:
            name = f"step-{self._step:08}"
            trainer.save_checkpoint(self._attempt.begin_save(name) / _FILE)
            self._attempt.saved(name, step=self._step, keep=KEPT)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._attempt.completed(trainer.global_step)


class ResumableLoader(DataLoader[Any]):
    """A DataLoader that resumes in the middle of an epoch: same order, after the batches that were seen.

    Lightning saves and restores what ``state_dict`` says; a plain DataLoader begins its epoch again. With one
    process the random numbers of the steps continue too. With several, the order is DistributedSampler's.
    """

    _seen = 0
    """Batches of this epoch."""
    _skipped = 0
    _began: torch.Tensor | None = None
    """torch's random numbers when the epoch began: a shuffling sampler draws its order from them."""
    _goes_on: torch.Tensor | None = None

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # DataLoader names a class of its own
        if self._began is not None:
            torch.set_rng_state(self._began)
        self._began, skipped, goes_on = torch.get_rng_state(), self._skipped, self._goes_on
        self._skipped, self._goes_on = 0, None
        for at, batch in enumerate(super().__iter__(), start=1):
            if at == skipped + 1 and goes_on is not None:
                torch.set_rng_state(goes_on)
            if at > skipped:
                self._seen = at
                yield batch
        self._seen, self._began = 0, None

    def state_dict(self) -> dict[str, Any]:
        is_alone = not dist.is_initialized()  # the first rank's numbers are not the others'
        drawn = {"began": self._began, "goes_on": torch.get_rng_state()} if is_alone else {}
        return {"seen": self._seen, **drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._skipped = state["seen"] % len(self)
        self._goes_on = state.get("goes_on")
        self._began = state.get("began") if self._skipped else self._goes_on
