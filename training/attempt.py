"""One attempt of a job: from the newest checkpoint on, to the end or to a stop."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from training.checkpoint import Checkpointer, JobState
from training.config import TrainConfig
from training.data.batches import Batches
from training.data.corpus import Corpus
from training.data.prefetch import BatchSource, prefetched
from training.loop import LoopEnd, LoopParts, LoopPlan, StepEnd, run_steps
from training.meter import Meter
from training.metrics import Event, event_line
from training.models.llama import Transformer
from training.preempt import EXIT_PREEMPTED
from training.preempt.agreement import Agreement
from training.profiling import traced
from training.report import Reporter
from training.results import write_metrics
from training.saves import Saves
from training.trainer import Trainer
from training.weights import export_weights, load_weights
from training.world import World, expect_steady_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Every rank has one."""

    config: TrainConfig
    env: Mapping[str, str]
    world: World
    model: Transformer
    optimizer: Optimizer
    corpus: Corpus
    checkpointer: Checkpointer
    agreement: Agreement

    def run(self) -> int:
        """The exit code."""
        resumed = self.checkpointer.load_newest()
        done = resumed.step if resumed else 0
        if resumed:
            self._tell(Event.RESUME, step=done)
        elif self.config.init_from:
            load_weights(self.model, self.config.init_from, self.env)
        meter = Meter(resumed.carried if resumed else None)
        steps = range(done + 1, self.config.steps + 1)
        pin = self.world.device if self.world.device.type == "cuda" else None
        with prefetched(self._batches(), depth=self.config.prefetch_batches, steps=steps, pin=pin) as batches:
            return self._train(done, meter, _Timed(batches, meter))

    def _train(self, done: int, meter: Meter, batches: BatchSource) -> int:
        trainer = Trainer(
            self.config,
            world=self.world,
            model=self.model,
            optimizer=self.optimizer,
            batches=batches,
            agreement=self.agreement,
        )
        reporter = self._reporter(trainer, meter)
        saves = self._saves(trainer, meter)
        reached = done

        def train_step(step: int) -> StepEnd:
            nonlocal reached
            end = trainer.step(step, save=saves.due())
            if end.trained:
                reached = step
                if step == done + 1:
                    expect_steady_steps()
            return end

        traced_step = traced(
            reporter.counted(train_step), at=self.config.profile_step, world=self.world, env=self.env
        )
        parts = LoopParts(
            agree=self.agreement.now, train_step=traced_step, report=reporter.report, save=saves.save
        )
        try:
            end = run_steps(_plan(self.config), parts, done=done)
            if end.stopped:
                if end.step > done:
                    saves.save_within(end.step, end.seconds_left)
                return self._leave(end)
            saves.finish()
            return self._complete(reporter.loss)
        except Exception as error:
            self.checkpointer.end(JobState.FAILED, step=reached, reason=str(error))
            raise

    def _reporter(self, trainer: Trainer, meter: Meter) -> Reporter:
        return Reporter(
            self.config,
            world=self.world,
            trainer=trainer,
            meter=meter,
            newest_checkpoint=lambda: self.checkpointer.newest_step,
        )

    def _saves(self, trainer: Trainer, meter: Meter) -> Saves:
        return Saves(
            self.checkpointer,
            meter,
            by_time=self.world.is_first and not self.config.checkpoint_every,
            check=trainer.check,
            tell=lambda step, stall: self._tell(Event.CHECKPOINT, step=step, stall_ms=round(1000 * stall, 1)),
        )

    def _leave(self, end: LoopEnd) -> int:
        """Say what is saved and what is lost."""
        newest = self.checkpointer.newest_step
        lost = end.step - newest
        saved = (
            f"saving would take longer than the {end.seconds_left:.0f} s that are left: "
            f"the {lost} steps after the checkpoint of step {newest} will be trained again"
            if lost
            else "its checkpoint is saved"
        )
        when = f"after step={end.step}; {saved}" if end.step else "before the first step"
        reason = f"stopped on SIGTERM {when}"
        self.checkpointer.end(JobState.PREEMPTED, step=end.step, reason=reason)
        self._tell(Event.PREEMPT, step=end.step, checkpoint_step=newest, lost_steps=lost)
        if self.world.is_first:
            print(reason, flush=True)
        return EXIT_PREEMPTED

    def _complete(self, loss: float | None) -> int:
        steps = self.config.steps
        if self.config.export:
            export_weights(self.model, self.config.model_dir, self.config.shape)
        if self.world.is_first:
            told = {"preset": self.config.preset, "seed": self.config.seed, "steps": steps, "loss": loss}
            write_metrics(self.config.model_dir, told)
        self.checkpointer.end(JobState.COMPLETED, step=steps)
        self._tell(Event.DONE, step=steps, loss=loss)
        if self.world.is_first:
            print(f"completed step={steps}", flush=True)
        return 0

    def _batches(self) -> Batches:
        return Batches(
            corpus=self.corpus,
            sequence_length=self.config.shape.sequence_length,
            size=self.config.batch_size,
            rank=self.world.rank,
            ranks=self.world.size,
            seed=self.config.seed,
        )

    def _tell(self, event: Event, **details: float | str | None) -> None:
        if self.world.is_first:
            print(event_line(event, **details), flush=True)


@dataclass(frozen=True, slots=True)
class _Timed:
    """The same batches, and the meter hears how long each was waited for."""

    batches: BatchSource
    meter: Meter

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        began = time.perf_counter()
        batch = self.batches.at(step)
        self.meter.waited(time.perf_counter() - began)
        return batch


def _plan(config: TrainConfig) -> LoopPlan:
    return LoopPlan(
        steps=config.steps,
        log_every=config.log_every,
        checkpoint_every=config.checkpoint_every,
        min_step_seconds=config.min_step_seconds,
    )
