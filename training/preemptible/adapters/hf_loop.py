"""Trainer's loop, with functions of ours around those of its that save, evaluate and run an epoch.

A callback alone hears of a step's end, but cannot save in the middle of an evaluation, nor make one up. A
checkpoint of ours is taken after the step and its log line, before the evaluation that is due; what Trainer
keeps in memory only (losses since the last log line, counters, the place in a stream) is carried beside it.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader

from training.preemptible.adapters import carried as carried_state
from training.preemptible.adapters import hf_state
from training.preemptible.adapters.attempts import Attempt
from training.preemptible.adapters.hf_width import StepWidth, check_width
from training.preemptible.adapters.placed_data import PlacedData, own_seed, workers_of
from training.preemptible.adapters.random_numbers import put_back, random_numbers
from training.preemptible.adapters.widths import check_workers
from training.preemptible.adapters.wrapped import around, unwrap

_OURS = (
    "_save_checkpoint",
    "_evaluate",
    "_maybe_log_save_evaluate",
    "_run_epoch",
    "_load_rng_state",
    "_finalize_training",
)


class StoppableLoop:
    """One call of ``Trainer.train``."""

    def enter(self, attempt: Attempt) -> None:
        """Find the Trainer that calls, and put our functions around its own; resumes what Trainer does not.

        Raises:
            ValueError: Its global batch is not the one that the job began with.
        """
        call = hf_state.training_call()
        self._attempt, self._trainer = attempt, call["self"]
        self._trial, self._ignored = call["trial"], call["ignore_keys_for_eval"]
        self._started_at, self._folder = call["start_time"], call["resume_from_checkpoint"]
        self._carried = carried_state.read_carried(self._folder)
        self._data: PlacedData | None = None
        self._data_seeds: tuple[int, tuple[int, ...]] | None = None
        self._epoch, self._seen, self._is_step_over, self._has_epoch_ended = 0, 0, True, False
        self._logged: tuple[Any, Any] = (None, None)
        self._before_evaluation: dict[str, Any] | None = None
        self._is_making_up = self._has_saved = self._is_trained = False
        self._numbers: dict[str, Any] | None = None
        self._width = StepWidth.of(self._trainer, call["num_update_steps_per_epoch"])
        if self._carried is not None:
            self._restore(self._carried)
        self._is_caught_up = self._carried is None
        self._own = {name: around(self._trainer, name, getattr(self, name.lstrip("_"))) for name in _OURS}
        handler = self._trainer.callback_handler
        self._own["on_epoch_begin"] = around(handler, "on_epoch_begin", self.on_epoch_begin)

    def leave_to_trainer(self, step: int) -> None:
        """Give Trainer its own functions back, at the end of the training."""
        unwrap(self._trainer, _OURS)
        unwrap(self._trainer.callback_handler, ("on_epoch_begin",))
        self._attempt.completed(step)

    def count_batch(self, *, ends_step: bool) -> None:
        self._seen += 1
        self._is_step_over = ends_step

    def end_epoch(self) -> None:
        self._has_epoch_ended = True

    def hear_in_evaluation(self) -> None:
        """Leave after this batch of an evaluation if that is asked for, with what was there before it."""
        before = self._before_evaluation
        if before is None or not self._attempt.is_asked_to_stop():
            return
        step = self._trainer.state.global_step
        if self._is_making_up or step == 0:
            self._attempt.leave(step)  # the checkpoint of this step says already that it is due
        vars(self._trainer.state).update(before["state"])
        hf_state.set_callbacks(self._trainer, before["callbacks"])
        if callable(train := getattr(self._trainer.optimizer, "train", None)):
            train()  # schedule-free optimizers have other weights in an evaluation
        self._save(evaluation_due=True, save_due=before["save_due"], numbers=before["numbers"])

    # Around Trainer's own

    def save_checkpoint(self, *arguments: Any, **named: Any) -> None:
        """Save what Trainer saves, and what it does not."""
        state = self._trainer.state
        if self._is_making_up:  # it is there, and no weight has changed since
            if state.best_global_step == state.global_step:
                state.best_model_checkpoint = self._folder
            return
        self._write(lambda: self._own["_save_checkpoint"](*arguments, **named), evaluation_due=False)

    def evaluate(self, *arguments: Any, **named: Any) -> Any:
        """Evaluate with random numbers aside, and hear of a stop that came in the evaluation's last part.

        Workers that persist draw a number in their first evaluation alone, which a resume would repeat.
        """
        is_at_start = named.get("skip_scheduler", False)
        if is_at_start and self._trainer.state.global_step > 0:
            return {}  # eval_on_start: the first attempt has done it
        numbers = random_numbers()
        self._before_evaluation = {
            "numbers": numbers,
            "state": copy.deepcopy(hf_state.plain_state(self._trainer.state)),
            "callbacks": hf_state.taken_callbacks(self._trainer),
            "save_due": self._trainer.control.should_save,
        }
        metrics = self._own["_evaluate"](*arguments, **named)
        self._before_evaluation = None
        put_back(numbers)
        self._attempt.is_asked_to_stop()
        return metrics

    def maybe_log_save_evaluate(self, *arguments: Any, **named: Any) -> None:
        """Leave behind the step and its log line, before the evaluation that is due."""
        own, control = self._own["_maybe_log_save_evaluate"], self._trainer.control
        self._has_saved, self._logged = False, (arguments[1], named["learning_rate"])
        if self._attempt.is_asked_to_stop() and control.should_evaluate:
            save_due = control.should_save
            control.should_evaluate = control.should_save = False
            own(*arguments, **named)
            self._save(evaluation_due=True, save_due=save_due)
        control.should_save |= self._attempt.is_leaving
        own(*arguments, **named)
        if self._has_saved:
            self._attempt.saved(self._name(), step=self._trainer.state.global_step)
        elif self._attempt.is_leaving:
            self._save(evaluation_due=False)

    def run_epoch(self, **call: Any) -> None:
        """Run what is left of this epoch; nothing of those that attempts before have run."""
        if self._is_trained:
            self._trainer.control.should_training_stop = True
            return
        epoch, carried = call["epoch"], self._carried
        if carried is not None and epoch < self._epoch:
            return
        is_resumed = epoch == call["epochs_trained"] and self._folder is not None
        if carried is not None:
            is_resumed = epoch == self._epoch and self._seen > 0
            call["epochs_trained"] = epoch if is_resumed else -1
            call["steps_trained_in_current_epoch"] = self._seen
            if epoch == self._epoch and not is_resumed and self._numbers is not None:
                put_back(self._numbers)
        skipped = call["steps_trained_in_current_epoch"] if is_resumed else 0
        self._epoch, self._seen, self._has_epoch_ended = epoch, skipped, False
        self._begin_data(call["train_dataloader"], call["steps_in_epoch"])
        self._carried = None
        self._own["_run_epoch"](**call)

    def load_rng_state(self, checkpoint: str | None) -> None:
        """Set the numbers of after the evaluation that was made up, not those of the checkpoint."""
        if self._numbers is None:
            self._own["_load_rng_state"](checkpoint)
        else:
            put_back(self._numbers)

    def on_epoch_begin(self, *arguments: Any, **named: Any) -> Any:
        self._catch_up()
        return self._own["on_epoch_begin"](*arguments, **named)

    def finalize_training(self, *arguments: Any, **named: Any) -> Any:
        self._catch_up()
        return self._own["_finalize_training"](*arguments, **named)

    # Data

    def _begin_data(self, loader: Any, batches: int) -> None:
        base, carried = getattr(loader, "base_dataloader", loader), self._carried
        self._batches, self._workers = batches, workers_of(base)
        if not isinstance(base, DataLoader):
            return  # a script's own; Trainer skips its batches by reading them
        if self._data is None:
            seed, generators = carried["data"] if carried else (carried_state.agreed(own_seed(base)), None)
            self._data = PlacedData(base, seed=seed, rank=carried_state.rank(), generator_seeds=generators)
            self._data_seeds = (seed, carried_state.agreed(self._data.generator_seeds))
        expected = None
        if carried is not None:
            check_workers(self._workers, before=carried["workers"])
            if carried["width"] == self._width.as_dict() and self._seen:
                expected = (self._seen, carried["digest"])
        self._data.begin(self._epoch, expected=expected)

    # The save

    def _save(
        self, *, evaluation_due: bool, save_due: bool = False, numbers: dict[str, Any] | None = None
    ) -> None:
        """Save, and leave if that was asked for."""
        trainer = self._trainer
        self._write(
            lambda: self._own["_save_checkpoint"](trainer.model_wrapped, self._trial),
            evaluation_due=evaluation_due,
            save_due=save_due,
            numbers=numbers,
        )
        trainer.control = trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)
        self._attempt.saved(self._name(), step=trainer.state.global_step)

    def _write(
        self,
        write: Callable[[], None],
        *,
        evaluation_due: bool,
        save_due: bool = False,
        numbers: dict[str, Any] | None = None,
    ) -> None:
        trainer, numbers = self._trainer, numbers or random_numbers()
        folder = self._attempt.begin_save(self._name())
        write()
        # The epoch of a stream (0 steps) is all of a training to Trainer; only the stream knows its end.
        control, is_seen = trainer.control, self._width.steps > 0 and self._seen == self._batches
        is_over = control.should_epoch_stop or control.should_training_stop or is_seen
        content = {
            "epoch": self._epoch,
            "samples": self._seen * self._width.batch,
            "is_over": is_over,
            "is_seen": is_seen,
            "is_at_last_step": trainer.state.global_step >= trainer.state.max_steps,
            "has_ended": self._has_epoch_ended,
            "evaluation_due": evaluation_due,
            "save_due": save_due,
            "losses": (trainer._tr_loss.item(), trainer._total_loss_scalar, trainer._globalstep_last_logged),
            "logged": tuple(map(hf_state.as_number, self._logged)),
            "callbacks": hf_state.taken_callbacks(self._trainer),
            # A stream may end in the middle of a step, which its next pass goes on with.
            "gradients": {} if self._is_step_over else carried_state.gradients_of(trainer.model),
            "width": self._width.as_dict(),
            "workers": self._workers,
            "data": self._data_seeds,
            "digest": self._data.digest_after(self._seen) if self._data is not None else None,
        }
        carried_state.write_carried(folder, content, numbers=numbers)
        self._has_saved = True

    def _name(self) -> str:
        return f"checkpoint-{self._trainer.state.global_step}"

    # The resume

    def _restore(self, carried: dict[str, Any]) -> None:
        trainer = self._trainer
        check_width(self._width, before=StepWidth(**carried["width"]))
        loss, trainer._total_loss_scalar, trainer._globalstep_last_logged = carried["losses"]
        trainer._tr_loss = torch.tensor(loss, device=trainer.args.device)
        hf_state.set_callbacks(trainer, carried["callbacks"])
        if carried["is_at_last_step"] and trainer.state.global_step < trainer.state.max_steps:
            trainer.control.should_training_stop = False  # it is to be trained longer now: the epoch goes on
            carried["is_over"], carried["has_ended"] = carried["is_seen"], False
        carried_state.set_gradients(trainer.model, carried["gradients"])
        self._numbers = carried["numbers"]
        self._epoch, self._seen = carried["epoch"], carried["samples"] // self._width.batch
        if trainer.args.ignore_data_skip:
            self._seen = 0

    def _catch_up(self) -> None:
        """Do what was due at the step of the stop, before anything else; once."""
        if self._is_caught_up or self._carried is None:
            return
        self._is_caught_up = self._is_making_up = True
        carried, trainer = self._carried, self._trainer
        put_back(carried["numbers"])
        if carried["evaluation_due"]:
            trainer.control.should_evaluate, trainer.control.should_save = True, carried["save_due"]
            self._rest_of_step(carried)
        control = trainer.control
        is_over = carried["is_over"] or control.should_epoch_stop or control.should_training_stop
        if is_over and not carried["has_ended"]:
            trainer.control = trainer.callback_handler.on_epoch_end(trainer.args, trainer.state, control)
            self._rest_of_step(carried)
        self._is_making_up = False
        self._numbers = random_numbers()
        if self._attempt.is_leaving:
            self._attempt.leave(trainer.state.global_step)
        if is_over or carried["has_ended"]:
            self._epoch, self._seen = carried["epoch"] + 1, 0
        state = trainer.state
        self._is_trained = trainer.control.should_training_stop or state.global_step >= state.max_steps

    def _rest_of_step(self, carried: dict[str, Any]) -> None:
        trainer = self._trainer
        gradient, rate = carried["logged"]
        self._own["_maybe_log_save_evaluate"](
            trainer._tr_loss,
            gradient,
            trainer.model_wrapped,
            self._trial,
            carried["epoch"],
            self._ignored,
            self._started_at,
            learning_rate=rate,
        )
