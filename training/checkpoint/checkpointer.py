"""Saves and loads a sharded model with its optimizer; every rank calls, the first one decides."""

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.optim import Optimizer

from training.checkpoint.directory import Checkpoint, CheckpointDirectory, restore_index
from training.errors import CheckpointMismatchError


class Checkpointer:
    """What a resumed run needs beside these weights follows from the step, so nothing else is saved."""

    def __init__(
        self,
        directory: CheckpointDirectory,
        *,
        model: nn.Module,
        optimizer: Optimizer,
        options: Mapping[str, str],
        total_steps: int,
    ) -> None:
        self._directory, self._model, self._optimizer = directory, model, optimizer
        self._options, self._total_steps = options, total_steps

    def load_newest(self) -> int:
        """Load the newest whole checkpoint; its step, or 0 without one.

        Raises:
            CheckpointMismatchError: It is of another training.
        """
        # One rank looks, or two could see different things.
        chosen: list[Checkpoint | None] = [self._choose() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(chosen)
        checkpoint = chosen[0]
        if checkpoint is not None:
            self._load(checkpoint)
        if dist.get_rank() == 0:
            _tell(checkpoint)
        return checkpoint.step if checkpoint else 0

    def save(self, step: int) -> None:
        """Publish a checkpoint of this step."""
        save(self._state(), checkpoint_id=self._directory.incomplete(step))
        if dist.get_rank() == 0:
            self._directory.publish(step, total_steps=self._total_steps, options=self._options)

    def _choose(self) -> Checkpoint | None:
        self._directory.clear_incomplete()
        whole, torn = self._directory.survey()
        for one in torn:
            print(f"skipping torn checkpoint {one.name}: {one.reason}", flush=True)
        if not whole:
            return None
        restore_index(whole[0])
        return whole[0]

    def _load(self, checkpoint: Checkpoint) -> None:
        self._check(checkpoint)
        state = self._state()
        load(state, checkpoint_id=checkpoint.path)
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def _check(self, checkpoint: Checkpoint) -> None:
        differences = {
            key: (checkpoint.options.get(key, "unset"), now)
            for key, now in self._options.items()
            if checkpoint.options.get(key, "unset") != now
        }
        if differences:
            raise CheckpointMismatchError(path=checkpoint.path.name, differences=differences)

    def _state(self) -> dict[str, Any]:
        """References to all weights and moments; an optimizer that never stepped gets its moments here.

        (Loading into an empty dictionary would load nothing, without a word.)
        """
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer}


def _tell(start: Checkpoint | None) -> None:
    if start is None:
        print("starting from scratch", flush=True)
    else:
        print(f"resumed from step={start.step} file={start.main_file} sha256={start.sha256()}", flush=True)
