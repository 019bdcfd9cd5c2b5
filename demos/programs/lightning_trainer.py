"""Trains with Lightning as a case of demo-scripts has it: validations, a stream, ranks."""

import os
import time
from collections.abc import Iterator

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from training.preemptible.adapters.lightning_trainer import PreemptionCallback, ResumableLoader

Sample = tuple[torch.Tensor, torch.Tensor, int]
"""Inputs, target, and the sample's number."""

CHECKPOINTS = os.environ.get("SM_CHECKPOINT_DIR", "checkpoints")
STEPS, SAMPLES, BATCH = int(os.environ["STEPS"]), 64, 4
EVALUATE_EVERY = int(os.environ.get("EVALUATE_EVERY", "0"))
RANKS, RANKS_A_HOST = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def sample(index: int) -> Sample:
    inputs = torch.randn(16, generator=torch.Generator().manual_seed(index))
    return inputs, inputs.sum(0, keepdim=True), index


class Sums(Dataset[Sample]):
    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Sample:
        return sample(self.numbers[index])


class Stream(IterableDataset[Sample]):
    """A stream of which each rank reads samples of its own: Lightning does not divide a stream."""

    def __iter__(self) -> Iterator[Sample]:
        return map(sample, range(int(os.environ.get("RANK", "0")), SAMPLES, RANKS))


class Adder(lightning.LightningModule):  # type: ignore[misc]  # the library's types are not followed
    def __init__(self) -> None:
        super().__init__()
        dropout = nn.Dropout(float(os.environ["DROPOUT"]))
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), dropout, nn.Linear(32, 1))
        self.total = 0.0

    def training_step(self, batch: tuple[torch.Tensor, ...], _index: int) -> torch.Tensor:
        time.sleep(0)  # the gate of the demo is here
        inputs, targets, numbers = batch
        step = self.global_step + 1
        print(f"step={step} samples={numbers.tolist()}\n", end="", flush=True)
        loss: torch.Tensor = (self.layers(inputs) - targets).square().mean()
        mean = self.trainer.strategy.reduce(loss.detach().clone(), reduce_op="mean")
        if self.trainer.is_global_zero:
            print(f"step={step} loss={mean.item()!r}\n", end="", flush=True)
        return loss

    def on_validation_epoch_start(self) -> None:
        self.total = 0.0

    def validation_step(self, batch: tuple[torch.Tensor, ...], _index: int) -> None:
        inputs, targets, _ = batch
        noisy = inputs + 0.01 * torch.randn_like(inputs)  # an evaluation may draw random numbers, too
        self.total += (self.layers(noisy) - targets).square().mean().item()

    def on_validation_epoch_end(self) -> None:
        print(f"evaluation={self.global_step} loss={self.total!r}\n", end="", flush=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def main() -> None:
    torch.manual_seed(7)
    preemption = PreemptionCallback(CHECKPOINTS, every_n_steps=10)
    trainer = lightning.Trainer(
        max_steps=STEPS,
        callbacks=[preemption],
        accelerator="cpu",
        devices=RANKS_A_HOST,
        num_nodes=RANKS // RANKS_A_HOST,
        strategy="ddp" if RANKS > 1 else "auto",
        num_sanity_val_steps=0,
        val_check_interval=EVALUATE_EVERY or None,
        check_val_every_n_epoch=None,
        limit_val_batches=None if EVALUATE_EVERY else 0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        logger=False,
    )
    is_stream = bool(os.environ.get("STREAM"))
    data = Stream() if is_stream else Sums(range(SAMPLES))
    texts = ResumableLoader(data, batch_size=BATCH, shuffle=not is_stream)
    others = DataLoader(Sums(range(SAMPLES, SAMPLES + 8)), batch_size=BATCH)
    trainer.fit(Adder(), texts, others, ckpt_path=preemption.newest)


if __name__ == "__main__":
    main()
