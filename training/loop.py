"""The steps of an attempt, from top to bottom: what a step is, what is reported, what a SIGTERM costs.

The hard parts have their own modules: sharding (parallel), the vote of the ranks (agreement.py), checkpoints.
"""

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial

import torch
from torch import Tensor

from training.config import TrainConfig
from training.data import seed_of
from training.data.batches import Batch, BatchSource
from training.errors import NotFiniteError
from training.families import objective_of
from training.metrics import Event, Validation
from training.models.float8 import gathers_float8, precompute_scales
from training.models.transformer import Backbone
from training.monitoring.evaluation import Evaluation
from training.monitoring.goodput import Meter
from training.monitoring.report import Reporter, Trace, wait_for
from training.optim import clip, learning_rate, step_if_finite
from training.parallel.sharding import begin_part
from training.preemptible.agreement import Agreement, Decision
from training.preemptible.checkpoint import Checkpointer, JobState, SaveTimer
from training.ranks.world import World, expect_steady_steps, tell

_BACKWARD_SHARE = 2 / 3
"""Share of the backward pass in the time of both passes: it has twice the matrix products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEnd:
    step: int
    """The last step trained, by this attempt or one before."""
    stopped: bool
    """True if all ranks agreed to leave before the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The batch that a rank computes at once: its share of a step, or a part of that."""

    batch: Batch
    targets: Tensor | int
    """Targets trained in this step over all parts and ranks: the loss is the mean over them."""
    is_last: bool
    share_left: float
    """Share of the step's time that is left after the forward pass of this part."""


@dataclass(eq=False, repr=False)
class Trainer:
    """Trains the steps of an attempt. Every rank has one and calls the same methods in the same order."""

    config: TrainConfig
    _: KW_ONLY
    world: World
    model: Backbone
    optimizer: torch.optim.Optimizer
    batches: BatchSource
    agreement: Agreement
    meter: Meter
    checkpointer: Checkpointer | None = None
    """It has loaded what there was. None if nothing is saved."""
    reporter: Reporter | None = None
    """Prints the metrics; None if nothing is printed."""
    trace: Trace
    is_masked: bool = False
    """True if some targets are not trained, so that those of a step are counted over the ranks."""
    evaluation: Evaluation | None = None
    """Evaluates the model; None if no evaluation is made."""
    validation: Validation | None = None
    """The newest evaluation's result, of this attempt or one before."""

    def __post_init__(self) -> None:
        self.reached = 0
        """The last step trained."""
        self.reported_loss: float | None = None
        """The newest loss reported; None when the checkpoint was already of the last step."""
        self._objective = objective_of(self.config)
        self._loss = torch.zeros((), dtype=torch.float64, device=self.world.device)
        self._grad_norm = torch.zeros((), device=self.world.device)
        self._first_bad = torch.zeros((), dtype=torch.int64, device=self.world.device)
        # One rank watches the clock for all: clocks differ.
        watches = self.world.is_first and not self.config.checkpoint_every
        self._timer = SaveTimer(time.monotonic()) if watches else None

    def run(self, steps: range) -> LoopEnd:  # noqa: C901, PLR0915  a reader sees a whole step here
        """Train these steps, or until all ranks agree to stop.

        Nothing in a step waits for the device but a report and a save. The ranks vote beside each loss,
        before its backward pass, and beside the update; a vote travels while the device computes. A stop
        that they agree on before a backward pass drops the step if it cannot end and be saved in the time
        that is left: the next attempt repeats it.
        """
        config, self.reached = self.config, steps.start - 1
        if self.agreement.now().stop:
            return self._leave(is_saved=True)
        if self._was_dropped(self.reached):
            self._evaluate(self.reached)
        for step in steps:
            if config.hold_file and self._stopped_on_hold(step):
                return self._leave(is_saved=step == steps.start)
            ends_at, losses = self._begin(step), []
            for part in self._parts(step):
                begin_part(self.model, is_last=part.is_last, strategy=config.strategy)
                outputs = self._objective.outputs(self.model, part.batch)
                self.agreement.begin(seconds_needed=partial(self._seconds_to_end, part))
                loss, objective = self._local_loss(outputs, part)
                if self.agreement.settled().must_drop:
                    self.optimizer.zero_grad()
                    return self._leave(is_saved=step == steps.start)
                objective.backward()  # type: ignore[no-untyped-call]  # torch's
                losses.append(loss.detach())
            self.agreement.begin(save=self._save_is_due())
            self._update(step, losses)
            decision = self.agreement.settled()
            self.trace.end(step)
            time.sleep(max(0.0, ends_at - time.monotonic()))
            self.meter.step_done()
            self.reached = step
            if step == steps.start:
                expect_steady_steps()
            if self.reporter and (decision.stop or self._reports_at(step)):
                self.report(step, self.reporter)
            if not decision.stop and self._evaluates_at(step):
                decision = self._evaluate(step)
            if decision.stop:
                return self._leave()
            if decision.save or self._saves_at(step):
                self._save(step)
        return LoopEnd(step=self.reached, stopped=False)

    def _begin(self, step: int) -> float:
        """Make a step ready; return the earliest time at which it may end, on the monotonic clock."""
        ends_at = time.monotonic() + self.config.shortest_step(self.world.data_ranks)
        self.trace.begin(step)
        # Whatever draws random numbers draws the same after a resume.
        self.world.accelerator.seed(seed_of(self.config.seed, "step", step, self.world.data_rank))
        return ends_at

    def lr(self, step: int) -> float:
        config = self.config
        return learning_rate(step, peak=config.lr, warmup_steps=config.warmup_steps, steps=config.steps)

    def loss(self) -> float:
        """Return the loss of the last step, over all ranks; waits for the device."""
        return self.world.summed(self._loss).item()

    def check(self) -> None:
        """Raise NotFiniteError if a step so far was not made; waits for the device."""
        if step := int(self._first_bad.item()):
            raise NotFiniteError(step=step, loss=self.loss(), lr=self.lr(step))

    def _parts(self, step: int) -> Iterator[Part]:
        """Yield the parts of this rank's share of a step, on its device."""
        parts = self.config.gradient_accumulation_steps
        batch = self.batches.at(step)
        self.meter.data_arrived()
        targets = self._trained_targets(batch)
        rows = [tensor.to(self.world.device, non_blocking=True).chunk(parts) for tensor in batch]
        for number, rows_of_part in enumerate(zip(*rows, strict=True), 1):
            yield Part(
                batch=rows_of_part,
                targets=targets,
                is_last=number == parts,
                share_left=(parts - number + _BACKWARD_SHARE) / parts,
            )

    def _trained_targets(self, batch: Batch) -> Tensor | int:
        """Count the trained targets of a step, over all ranks."""
        if not self.is_masked:
            return self.config.targets_per_step
        count = self._objective.counted(batch).to(self.world.device)
        return self.world.summed(count).clamp(min=1)

    def _local_loss(self, outputs: Tensor, part: Part) -> tuple[Tensor, Tensor]:
        """Return this rank's part of the mean over all trained targets, so that parts and gradients add up.

        The first is the loss as it is reported, the second is minimised: with ``z_loss`` it is more than
        that.
        """
        each = self._objective.terms(outputs, part.batch)
        # In fp64, or the sum of a batch would hide what a change of the number of ranks does.
        loss, *squares = (terms.sum(dtype=torch.float64) / part.targets for terms in each.unbind(dim=1))
        return loss, loss + self.config.z_loss * squares[0] if squares else loss

    def _update(self, step: int, losses: list[Tensor]) -> None:
        """Make the step, unless its gradients are not finite: that is noted, for ``check`` to raise."""
        self._loss = torch.stack(losses).sum()
        self.trace.before_update(step)
        self._grad_norm = clip(self.model, self.config.grad_clip)
        is_first_bad = ~self._grad_norm.isfinite() & (self._first_bad == 0)
        self._first_bad = torch.where(is_first_bad, step, self._first_bad)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr(step)
        step_if_finite(self.optimizer, self._grad_norm)
        if gathers_float8(self.config):
            precompute_scales(self.model)
        self.optimizer.zero_grad()

    def report(self, step: int, reporter: Reporter) -> None:
        """Print the step's metrics. Raises NotFiniteError after the metric line of the step that shows it."""
        self.reported_loss, grad_norm = self.loss(), self._grad_norm.item()  # waits for the device
        reporter.report(step, loss=self.reported_loss, grad_norm=grad_norm, lr=self.lr(step))
        self.check()

    def _reports_at(self, step: int) -> bool:
        return step == self.config.steps or step % self.config.log_every == 0

    def _saves_at(self, step: int) -> bool:
        every = self.config.checkpoint_every
        return step == self.config.steps or (every > 0 and step % every == 0)

    def _evaluates_at(self, step: int) -> bool:
        every = self.config.eval_every
        return self.evaluation is not None and (step == self.config.steps or step % every == 0)

    def _was_dropped(self, step: int) -> bool:
        """Tell whether the attempt before was stopped in the evaluation after its last step."""
        known = self.validation is not None and self.validation.step == step
        return step > 0 and self._evaluates_at(step) and not known

    def _evaluate(self, step: int) -> Decision:
        """Evaluate. The ranks vote before each batch: a stop drops what is left of the evaluation."""
        assert self.evaluation is not None
        began = time.perf_counter()
        decision = self.agreement.now(save=self._save_is_due())
        for _ in self.evaluation.batches():
            if decision.stop:
                return decision
            decision = self.agreement.now(save=self._save_is_due())
        self.validation = self.evaluation.result(step)
        if self.reporter:
            self.reporter.evaluated(self.validation, seconds=time.perf_counter() - began)
        self.meter.paused(time.perf_counter() - began)
        return decision

    def _stopped_on_hold(self, step: int) -> bool:
        """Wait until a demonstration lets this step begin; every rank has a view of its own of the file."""
        self.meter.paused(wait_for(step, self.config.hold_file, is_over=lambda: self.agreement.is_asked))
        return self.agreement.now().stop

    def _save_is_due(self) -> bool:
        """Tell whether a save is due by time."""
        return self._timer is not None and self._timer.due(time.monotonic())

    def _save(self, step: int) -> None:
        if self.checkpointer is None:
            return
        self.check()
        stall = self.checkpointer.save(step, carried=self._carried())
        self.meter.held_up(stall)
        tell(self.world, Event.CHECKPOINT, step=step, stall_ms=round(1000 * stall, 1))
        if self._timer is not None:
            self._timer.saved(time.monotonic(), stall_seconds=stall)

    def _seconds_to_end(self, part: Part) -> float:
        """Estimate the seconds from here, between this part's passes, to the end of the step and its save."""
        if self.checkpointer is None:
            return 0.0
        # Where the host has run ahead, the time that is left is the device's.
        self.world.accelerator.synchronize(self.world.device)
        return part.share_left * self.meter.longest_step + self.checkpointer.seconds_to_save()

    def _carried(self) -> dict[str, float]:
        """Return the values that the next attempt must continue to count from."""
        return self.meter.carried() | (self.validation.carried() if self.validation else {})

    def _leave(self, *, is_saved: bool = False) -> LoopEnd:
        """Save the last whole step if there is time for it, and say what is saved and what is lost.

        ``is_saved``: this attempt has trained no step yet.
        """
        step, checkpointer = self.reached, self.checkpointer
        if checkpointer is None:
            return LoopEnd(step=step, stopped=True)
        if not is_saved:
            self.check()  # waits for the device, so the time that is left is asked for after it
        seconds_left = self.agreement.now().seconds_left
        if not is_saved:
            checkpointer.save_within(step, seconds_left, carried=self._carried())
        newest = checkpointer.newest_step
        lost = step - newest
        saved = (
            f"saving would take longer than the {seconds_left:.0f} s that are left: "
            f"the {lost} steps after the checkpoint of step {newest} will be trained again"
            if lost
            else "its checkpoint is saved"
        )
        reason = f"stopped on SIGTERM {f'after step={step}; {saved}' if step else 'before the first step'}"
        checkpointer.end(JobState.PREEMPTED, step=step, reason=reason)
        tell(self.world, Event.PREEMPT, step=step, checkpoint_step=newest, lost_steps=lost)
        if self.world.is_first:
            print(reason, flush=True)
        return LoopEnd(step=step, stopped=True)
