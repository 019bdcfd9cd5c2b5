"""Trains with Accelerate as a case of demo-scripts has it: evaluations, a stream, ranks."""

import os
import time
from collections.abc import Iterator

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from training.preemptible.adapters.accelerate_loop import PreemptibleLoop

Sample = tuple[torch.Tensor, torch.Tensor, int]
"""Inputs, target, and the sample's number."""

CHECKPOINTS = os.environ.get("SM_CHECKPOINT_DIR", "checkpoints")
STEPS, SAMPLES, BATCH = int(os.environ["STEPS"]), 64, 4
EVALUATE_EVERY = int(os.environ.get("EVALUATE_EVERY", "0"))


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
    def __iter__(self) -> Iterator[Sample]:
        return map(sample, range(SAMPLES))


def main() -> None:
    torch.manual_seed(7)
    accelerator = Accelerator(cpu=True)
    dropout = nn.Dropout(float(os.environ["DROPOUT"]))
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), dropout, nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    is_stream = bool(os.environ.get("STREAM"))
    data = Stream() if is_stream else Sums(range(SAMPLES))
    texts = DataLoader(data, batch_size=BATCH, shuffle=not is_stream)
    others = DataLoader(Sums(range(SAMPLES, SAMPLES + 8)), batch_size=BATCH)
    model, optimizer, texts, others = accelerator.prepare(model, optimizer, texts, others)

    def evaluate(step: int) -> None:
        model.eval()
        total = 0.0
        for inputs, targets, _ in loop.watched(others):
            noisy = inputs + 0.01 * torch.randn_like(inputs)  # an evaluation may draw random numbers, too
            total += (model(noisy) - targets).square().mean().item()
        print(f"evaluation={step} loss={total!r}\n", end="", flush=True)
        model.train()

    evaluations = (EVALUATE_EVERY, evaluate) if EVALUATE_EVERY else None
    loop = PreemptibleLoop(accelerator, CHECKPOINTS, steps=STEPS, save_every=10, evaluate=evaluations)
    for step, (inputs, targets, numbers) in loop.batches(texts):
        time.sleep(0)  # the gate of the demo is here
        print(f"step={step} samples={numbers.tolist()}\n", end="", flush=True)
        loss = (model(inputs) - targets).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        mean = accelerator.reduce(loss.detach(), "mean")
        if accelerator.is_main_process:
            print(f"step={step} loss={mean.item()!r}\n", end="", flush=True)


if __name__ == "__main__":
    main()
