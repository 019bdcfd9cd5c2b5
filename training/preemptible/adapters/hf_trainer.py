"""Hugging Face's Trainer: ``callbacks=[PreemptionCallback()]``, and ``newest_whole`` to resume from."""

from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.preemptible.adapters.attempts import Attempt, newest_whole
from training.preemptible.adapters.carried import rank
from training.preemptible.adapters.hf_loop import StoppableLoop
from training.preemptible.progress import Progress, width

__all__ = ["PreemptionCallback", "newest_whole"]


class PreemptionCallback(TrainerCallback):  # type: ignore[misc]  # the library's types are not followed
    """Saves and leaves with 143 after the step, or the batch of an evaluation, in which SIGTERM came.

    An evaluation that was due at the step of a stop, or was cut off by it, is the first that the next attempt
    does, from the random numbers that it would have begun with.
    """

    def on_init_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if args.device.type == "cpu" and args.device.index is not None:
            # With several ranks it is cpu:0, to which torch.load moves nothing (transformers 5.17).
            vars(args)["_setup_devices"] = torch.device("cpu")

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if args.save_only_model:
            raise ValueError("save_only_model=True leaves nothing to resume from: set it to False")
        if getattr(args, "enable_jit_checkpoint", False):
            raise ValueError("enable_jit_checkpoint=True takes SIGTERM from this callback: set it to False")
        self._progress = Progress(state.global_step, width=width()) if rank() == 0 else None
        self._loop = StoppableLoop()
        self._loop.enter(Attempt(args.output_dir, step=state.global_step, steps=state.max_steps))

    def on_substep_end(self, *arguments: Any, **_: Any) -> None:
        self._loop.count_batch(ends_step=False)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if self._progress is not None:
            self._progress.reached(state.global_step, state.max_steps)
        self._loop.count_batch(ends_step=True)

    def on_epoch_end(self, *arguments: Any, **_: Any) -> None:
        self._loop.end_epoch()

    def on_prediction_step(self, *arguments: Any, **_: Any) -> None:
        if hasattr(self, "_loop"):  # else it is an evaluation before any training
            self._loop.hear_in_evaluation()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._loop.leave_to_trainer(state.global_step)
