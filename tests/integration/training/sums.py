"""Small data for the adapters' tests: four numbers and their sum, with a length or as a stream."""

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset


class Sums(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """``noisy``: each reading draws random numbers of torch and Python, as augmentations and masks do."""

    def __init__(self, samples: int, *, noisy: bool = False) -> None:
        self.samples, self.noisy = samples, noisy

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs = torch.randn(4, generator=torch.Generator().manual_seed(index))
        target = inputs.sum(0, keepdim=True)
        return (inputs + torch.randn(4) / 10 + random.random() / 10 if self.noisy else inputs), target


class StreamOfSums(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Without a length, each time in an order of its own."""

    def __init__(self, samples: int, *, noisy: bool = False) -> None:
        self.sums = Sums(samples, noisy=noisy)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return (self.sums[index] for index in torch.randperm(len(self.sums)).tolist())


def small_model() -> torch.nn.Sequential:
    """Dropout, so that each step draws too."""
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))


def weight_of(model: torch.nn.Module) -> float:
    """Tell models apart, to the last digit."""
    return float(sum(weight.detach().double().abs().sum() for weight in model.parameters()))


def loss_of(model: Any, batch: Any) -> torch.Tensor:
    inputs, targets = batch
    loss: torch.Tensor = (model(inputs) - targets).square().mean()
    return loss
