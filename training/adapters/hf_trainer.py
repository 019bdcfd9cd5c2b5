"""Hugging Face's Trainer: ``callbacks=[PreemptionCallback()]``, and ``newest_whole`` to resume from."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.adapters.attempts import Attempt, newest_whole

__all__ = ["PreemptionCallback", "newest_whole"]


class PreemptionCallback(TrainerCallback):  # type: ignore[misc]  # the library's types are not followed
    """Saves and leaves with 143 after the step in which SIGTERM came; no evaluation comes in between."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if args.save_only_model:
            raise ValueError("save_only_model=True leaves nothing to resume from: set it to False")
        if getattr(args, "enable_jit_checkpoint", False):
            raise ValueError("enable_jit_checkpoint=True takes SIGTERM from this callback: set it to False")
        self._attempt = Attempt(args.output_dir, step=state.global_step, steps=state.max_steps)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if self._attempt.is_asked_to_stop():
            control.should_save, control.should_evaluate = True, False
        if control.should_save:
            self._attempt.begin_save(_name(state))

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._attempt.saved(_name(state), step=state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._attempt.completed(state.global_step)


def _name(state: TrainerState) -> str:
    return f"checkpoint-{state.global_step}"
