"""Lightning's Trainer: ``callbacks=[preemption]``, and ``fit(..., ckpt_path=preemption.newest)``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from training.preemptible.adapters.attempts import KEPT, Attempt, newest_whole
from training.preemptible.adapters.carried import (
    gradients_of,
    rank,
    read_carried,
    set_gradients,
    write_carried,
)
from training.preemptible.adapters.lightning_data import TrainingData
from training.preemptible.adapters.lightning_metrics import put_back_metrics, taken_metrics
from training.preemptible.adapters.random_numbers import put_back, random_numbers
from training.preemptible.adapters.resumable_loader import ResumableLoader
from training.preemptible.adapters.wrapped import around, unwrap
from training.preemptible.progress import Progress, width

__all__ = ["PreemptionCallback", "ResumableLoader"]

_FILE = "model.ckpt"


class PreemptionCallback(Callback):  # type: ignore[misc]  # the library's types are not followed
    """Saves and leaves with 143 after the step in which SIGTERM came, and every ``every_n_steps`` besides.

    It takes SIGTERM from Lightning, which would leave without saving. Checkpoints of ModelCheckpoint are
    left alone; give it another folder.

    A checkpoint is taken when a batch's hooks are done and before the validation that is due then. The next
    attempt goes on at exactly that place: Lightning's own resume would begin the epoch again, or leave the
    validation out. A stop that comes within a validation leaves it after that batch, with what was there
    before it.
    """

    def __init__(self, folder: str, *, every_n_steps: int = 0) -> None:
        self._folder, self._every = folder, every_n_steps
        self._carried: dict[str, Any] | None = None

    @property
    def newest(self) -> str | None:
        newest = newest_whole(self._folder)
        return None if newest is None else str(Path(newest) / _FILE)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Put this callback's functions around Lightning's, before any loader is made."""
        if stage != TrainerFn.FITTING:
            return
        self._trainer, self._module = trainer, pl_module
        self._attempt: Attempt | None = None
        self._carried, self._step = None, 0
        self._progress: Progress | None = None
        self._known_steps: int | None = None
        self._saved_at: tuple[int, int] | None = None
        self._data = TrainingData(trainer)
        fit = trainer.fit_loop
        self._run = around(fit, "run", self._run_fit)
        self._setup_data = around(fit, "setup_data", self._set_up_data)
        self._process = around(trainer.strategy, "process_dataloader", self._placed)
        self._begin_epoch = around(fit.epoch_loop, "on_run_start", self._begin_data)
        self._after_batch = around(fit.epoch_loop, "on_advance_end", self._end_batch)
        self._validate = around(fit.epoch_loop.val_loop, "run", self._validated)

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if trainer.state.fn == TrainerFn.FITTING and trainer.ckpt_path is not None:
            self._carried = read_carried(Path(trainer.ckpt_path).parent)
            self._data = TrainingData(trainer, None if self._carried is None else self._carried["data"])
            if trainer.fit_loop._combined_loader is not None:  # strategies that load after the set-up
                trainer.fit_loop._combined_loader = None

    def on_sanity_check_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._begin_attempt()

    def on_validation_batch_end(self, trainer: Trainer, *arguments: Any, **named: Any) -> None:
        if self._attempt is None or trainer.state.fn != TrainerFn.FITTING or not self._is_even():
            return
        if self._attempt.is_asked_to_stop():
            if trainer.sanity_checking or self._saved_at == self._place():
                self._attempt.leave(trainer.global_step)  # what is there is saved, or was loaded
            progress, now = trainer.fit_loop.epoch_loop.val_loop.batch_progress, self._before_validation
            progress.load_state_dict(now["progress"])
            self._save(numbers=now["numbers"], metrics=now["metrics"])

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Leave Lightning's loops as they were; another fit gets a set-up of its own."""
        if stage == TrainerFn.FITTING:
            fit = trainer.fit_loop
            unwrap(fit, ("run", "setup_data"))
            unwrap(fit.epoch_loop, ("on_run_start", "on_advance_end"))
            unwrap(fit.epoch_loop.val_loop, ("run",))
            unwrap(trainer.strategy, ("process_dataloader",))

    def _begin_attempt(self) -> Attempt:
        if self._attempt is None:
            self._step = self._trainer.global_step
            self._attempt = Attempt(self._folder, step=self._step, steps=max(0, self._trainer.max_steps))
        self._attempt.listen()  # Lightning has put its own handler in place since the set-up
        self._trainer._signal_connector.received_sigterm = False
        return self._attempt

    def _run_fit(self) -> None:
        attempt = self._begin_attempt()
        if self._carried is None:
            self._trainer.fit_loop.setup_data()
            attempt.expect(self._measure())
            self._run()
        else:
            self._resumed_run(self._carried, attempt)
        attempt.completed(self._trainer.global_step)

    def _steps(self) -> int:
        return int(min(self._trainer.estimated_stepping_batches, 2**53))

    def _measure(self) -> int:
        """Begin to measure the steps of this attempt, and return how many the job has."""
        steps = self._steps()
        self._known_steps = steps if steps < 2**53 else None
        self._progress = Progress(self._step, width=width()) if rank() == 0 else None
        return steps

    # Data

    def _set_up_data(self) -> None:
        fit = self._trainer.fit_loop
        if fit._combined_loader is None or fit._should_reload_train_dl:
            self._data.forget()
        self._setup_data()

    def _placed(self, loader: Any) -> Any:
        loader = self._process(loader)
        if self._trainer.training:
            self._data.add(loader, self._trainer.fit_loop.epoch_progress.current.processed)
        return loader

    def _begin_data(self, fetcher: Any) -> None:
        """Place the data of one more epoch, where Lightning is about to iterate its loaders again."""
        fit = self._trainer.fit_loop
        if self._trainer.current_epoch > 0 and not fit.is_resuming and not fit.epoch_loop.restarting:
            self._data.begin(fit.epoch_progress.current.processed)
        self._begin_epoch(fetcher)

    # Steps

    def _end_batch(self, fetcher: Any) -> None:
        attempt, step = self._attempt, self._trainer.global_step
        assert attempt is not None
        if step != self._step:  # else gradients are being accumulated: a stop waits for the step's end
            is_due = self._every > 0 and step // self._every > self._step // self._every
            self._step = step
            if self._progress is not None:
                self._progress.reached(step, self._known_steps)
            if attempt.is_asked_to_stop() or is_due:
                self._save()
        self._after_batch(fetcher)

    def _validated(self) -> Any:
        """Validate with random numbers aside: workers that persist draw in their first validation alone."""
        if self._trainer.sanity_checking:
            return self._validate()
        numbers = random_numbers()
        self._before_validation = {
            "progress": self._trainer.fit_loop.epoch_loop.val_loop.batch_progress.state_dict(),
            "numbers": numbers,
            "metrics": taken_metrics(self._trainer, self._module),
        }
        outputs = self._validate()
        put_back(numbers)
        return outputs

    def _is_even(self) -> bool:
        """Tell whether all ranks have equally many batches of validation, and can vote after each."""
        sizes = self._trainer.fit_loop.epoch_loop.val_loop._max_batches
        return self._trainer.world_size == 1 or all(size != float("inf") for size in sizes)

    def _place(self) -> tuple[int, int]:
        return self._trainer.global_step, self._trainer.fit_loop.epoch_loop.batch_progress.total.ready

    def _save(self, *, numbers: dict[str, Any] | None = None, metrics: dict[str, Any] | None = None) -> None:
        """Save this rank's part, and leave if that was asked for."""
        trainer, attempt, numbers = self._trainer, self._attempt, numbers or random_numbers()
        assert attempt is not None
        fit, step = trainer.fit_loop, trainer.global_step
        name = f"step-{step:08}"
        folder = attempt.begin_save(name)
        trainer.save_checkpoint(folder / _FILE)
        seen = fit.epoch_loop.batch_progress.current.ready
        content = {
            "data": self._data.state(fit.epoch_progress.current.processed, seen),
            "metrics": metrics or taken_metrics(trainer, self._module),
            "should_stop": trainer.should_stop,
            "gradients": gradients_of(self._module) if fit._should_accumulate() else {},
        }
        write_carried(folder, content, numbers=numbers)
        self._saved_at = self._place()
        attempt.saved(name, step=step, keep=KEPT)

    # The resume

    def _resumed_run(self, carried: dict[str, Any], attempt: Attempt) -> None:
        """Run Lightning's fit loop from where the attempt before left it: behind a batch's hooks."""
        fit = self._trainer.fit_loop
        fit.setup_data()
        attempt.expect(self._measure())
        self._data.enter(fit._data_fetcher, go_on=self._leave_if_heard)
        for loop in (fit, fit.epoch_loop, fit.epoch_loop.val_loop):
            # What Lightning does when it restarts is for places that it saves at itself.
            loop._restarting = loop._loaded_from_state_dict = loop._resuming_from_checkpoint = False
        fit.on_run_start()
        self._put_back(carried)
        run_epoch: Callable[[], None] = self._finish_epoch
        is_over = False
        while not is_over:
            try:
                run_epoch()
                fit.on_advance_end()
            except StopIteration:
                is_over = True
            finally:
                fit.on_iteration_done()
            run_epoch, is_over = self._whole_epoch, is_over or fit.done
        fit.on_run_end()

    def _leave_if_heard(self) -> None:
        """Leave at once: what is there was loaded, so no rank needs to wait for the others."""
        if self._attempt is not None and self._attempt.is_heard:
            self._attempt.leave(self._trainer.global_step)

    def _put_back(self, carried: dict[str, Any]) -> None:
        trainer, module = self._trainer, self._module
        put_back_metrics(trainer, module, carried["metrics"])
        trainer.should_stop = carried["should_stop"]
        set_gradients(module, carried["gradients"])
        self._saved_at = self._place()
        put_back(carried["numbers"])

    def _whole_epoch(self) -> None:
        self._trainer.fit_loop.on_advance_start()
        self._trainer.fit_loop.advance()

    def _finish_epoch(self) -> None:
        fit = self._trainer.fit_loop
        loop, fetcher = fit.epoch_loop, fit._data_fetcher
        assert fetcher is not None
        fetcher._start_profiler, fetcher._stop_profiler = loop._on_before_fetch, loop._on_after_fetch
        self._after_batch(fetcher)  # the validation and the schedulers that were due
        loop.on_iteration_done()
        while not loop.done:
            try:
                loop.advance(fetcher)
                loop.on_advance_end(fetcher)
            except StopIteration:
                break
            finally:
                loop.on_iteration_done()
