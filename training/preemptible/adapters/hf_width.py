"""How Trainer splits an optimizer step: ranks times the batch of a device times accumulated batches."""

from collections.abc import Sized
from dataclasses import asdict, dataclass
from typing import Any

from training.preemptible.adapters.widths import ranks_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWidth:
    """Samples of a step, and of its parts."""

    ranks: int
    share: int
    """Samples of one batch of one rank."""
    batch: int
    """Samples of one batch over all ranks."""
    step: int
    """Samples of one optimizer step."""
    steps: int
    """Optimizer steps of an epoch; 0 where the data have no length.

    Earlier adapters wrote the steps of the whole training here, which a later attempt may change."""

    @classmethod
    def of(cls, trainer: Any, steps: int) -> "StepWidth":
        """Read it from a Trainer that is about to train."""
        args, size = trainer.args, trainer._train_batch_size
        accumulated = args.gradient_accumulation_steps
        step = trainer.get_total_train_batch_size(args)
        ranks = step // (size * accumulated)
        if args.accelerator_config.split_batches:
            step, share = size * accumulated, size // ranks
        else:
            share = size
        if not isinstance(trainer.train_dataset, Sized):
            steps = 0
        return cls(ranks=ranks, share=share, batch=step // accumulated, step=step, steps=steps)

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def check_width(now: StepWidth, *, before: StepWidth) -> None:
    """Refuse an attempt whose steps have other samples than those of the attempt before.

    Raises:
        ValueError: It says which numbers of ranks fit, and what to set on this one.
    """
    if now.step != before.step:
        raise ValueError(
            f"this job began with {before.step} samples a step, and {ranks_in_words(now.ranks)} with "
            f"batches of {now.share} and gradient_accumulation_steps={now.step // now.batch} make "
            f"{now.step}: {_advice(now, before)}"
        )
    if now.ranks != before.ranks and now.steps not in {0, before.steps}:
        raise ValueError(
            f"an epoch has {now.steps} steps on {ranks_in_words(now.ranks)} and had {before.steps}: set "
            f"dataloader_drop_last=False, or run it on {ranks_in_words(before.ranks)} again"
        )


def _advice(now: StepWidth, before: StepWidth) -> str:
    fitting = [ranks for ranks in range(1, before.step + 1) if before.step % (ranks * now.share) == 0]
    if now.ranks in fitting:
        return f"set gradient_accumulation_steps={before.step // (now.ranks * now.share)}"
    if fitting:
        numbers = ", ".join(str(ranks) for ranks in fitting)
        return f"with batches of {now.share} it fits on these numbers of ranks: {numbers}"
    numbers = ", ".join(str(ranks) for ranks in range(1, before.step + 1) if before.step % ranks == 0)
    return f"set per_device_train_batch_size to at most {before.step}, on these numbers of ranks: {numbers}"
