"""One optimizer step on one batch, on every rank at once."""

from dataclasses import KW_ONLY, dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from training.config import TrainConfig
from training.data.prefetch import BatchSource
from training.errors import NotFiniteError
from training.loop import StepEnd
from training.models.llama import Transformer
from training.optim import clip, learning_rate, step_if_finite
from training.parallel import begin_part
from training.preempt.agreement import Agreement
from training.seeds import seed_of
from training.world import World


@dataclass(eq=False, repr=False)
class Trainer:
    config: TrainConfig
    _: KW_ONLY
    world: World
    model: Transformer
    optimizer: torch.optim.Optimizer
    batches: BatchSource
    agreement: Agreement

    def __post_init__(self) -> None:
        self._loss = torch.zeros((), dtype=torch.float64, device=self.world.device)
        self._grad_norm = torch.zeros((), device=self.world.device)
        self._first_bad = torch.zeros((), dtype=torch.int64, device=self.world.device)

    @property
    def tokens_per_step(self) -> int:
        """Over all ranks."""
        return self.config.tokens_per_step

    def lr(self, step: int) -> float:
        config = self.config
        return learning_rate(step, peak=config.lr, warmup_steps=config.warmup_steps, steps=config.steps)

    def step(self, step: int, *, save: bool = False) -> StepEnd:
        """Queue the work of one step; nothing here waits for the device.

        The ranks' votes travel while a part is computed. A stop that is agreed on before the last part
        drops the step, which the next attempt repeats. ``save``: this rank wants a checkpoint after it.
        """
        # Whatever draws random numbers draws the same after a resume.
        torch.manual_seed(seed_of(self.config.seed, "step", step, self.world.rank))
        parts = self.config.gradient_accumulation_steps
        inputs, targets = (
            part.to(self.world.device, non_blocking=True).chunk(parts) for part in self.batches.at(step)
        )
        losses = []
        for number, (some_inputs, some_targets) in enumerate(zip(inputs, targets, strict=True), 1):
            self.agreement.begin(save=save)
            begin_part(self.model, is_last=number == parts, strategy=self.config.strategy)
            loss = self._local_loss(some_inputs, some_targets)
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
            decision = self.agreement.settled()
            if decision.stop and number < parts:
                self.optimizer.zero_grad()
                return StepEnd(decision=decision, trained=False)
        self._update(step)
        self._loss = torch.stack(losses).sum()
        return StepEnd(decision=decision, trained=True)

    def loss(self) -> float:
        """Of the last step, over all ranks; waits for the device."""
        total = self._loss.clone()
        dist.all_reduce(total)
        return total.item()

    def grad_norm(self) -> float:
        """Of the last step, over all ranks, before clipping; waits for the device."""
        return self._grad_norm.item()

    def check(self) -> None:
        """Raises NotFiniteError when a step so far was not made; waits for the device."""
        if step := int(self._first_bad.item()):
            raise NotFiniteError(step=step, loss=self.loss(), lr=self.lr(step))

    def _local_loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """This rank's part of the mean over the tokens of all ranks, so parts and gradients just add up."""
        logits = self.model(inputs).float().flatten(0, 1)
        losses = F.cross_entropy(logits, targets.flatten(), reduction="none")
        # In fp64, or the sum of a batch would hide what a change of the number of ranks does.
        return losses.sum(dtype=torch.float64) / self.tokens_per_step

    def _update(self, step: int) -> None:
        """A step whose gradients are not finite is not made, and noted; the host hears of it in ``check``."""
        self._grad_norm = clip(self.model, self.config.grad_clip)
        is_first_bad = ~self._grad_norm.isfinite() & (self._first_bad == 0)
        self._first_bad = torch.where(is_first_bad, step, self._first_bad)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr(step)
        step_if_finite(self.optimizer, self._grad_norm)
        self.optimizer.zero_grad()
