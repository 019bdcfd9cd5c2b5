"""A small model that learns, with a checkpointer; of the training program only that and an optimizer."""

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.checkpoint.storage import StorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import AdamW, Optimizer
from torch.utils._pytree import tree_flatten_with_path

from training.optim import AnyPrecisionAdamW
from training.preemptible.checkpoint import Checkpointer, CheckpointStore, LocalStore

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_BATCH = 8
_WIDTH = 48
_FEATURES = 12


class Learner:
    """Its batches, and so its losses, follow from the step; the ranks share a batch.

    ``pure``: weights and moments are bf16, and the optimizer keeps what sums of bf16 lose.
    """

    def __init__(
        self, store: CheckpointStore | Path, *, depth: int = 2, pure: bool = False, **options: Any
    ) -> None:
        torch.manual_seed(1)
        self._type = torch.bfloat16 if pure else torch.float32
        self.model = _made(depth).to(self._type)
        if dist.is_initialized():
            self.model = _sharded(self.model)
        parameters = list(self.model.parameters())
        self.optimizer: Optimizer = (
            AnyPrecisionAdamW(parameters, lr=1e-2) if pure else AdamW(parameters, lr=1e-2)
        )
        self.checkpointer = Checkpointer(
            LocalStore(store) if isinstance(store, Path) else store,
            model=self.model,
            optimizer=self.optimizer,
            **{"total_steps": 60, "clock": lambda: NOON, **options},
        )
        self.step = 0

    def load(self) -> int:
        resumed = self.checkpointer.load_newest()
        self.step = resumed.step if resumed else 0
        return self.step

    def learn(self, steps: int) -> list[float]:
        """The loss of each step over all ranks."""
        losses = []
        for _ in range(steps):
            self.step += 1
            loss = self._loss()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            losses.append(_summed(loss.detach()))
        return losses

    def save(self, *, carried: Mapping[str, float] | None = None) -> None:
        self.checkpointer.save(self.step, carried=carried)

    def sha256(self) -> str:
        """Of all weights and moments, whole, by their names; torch would count its making of moments."""
        stepped = bool(self.optimizer.state)
        state = get_state_dict(self.model, self.optimizer) if stepped else self.model.state_dict()
        leaves, _ = tree_flatten_with_path(state)
        digest = hashlib.sha256()
        for path, one in leaves:
            value = one.full_tensor() if isinstance(one, DTensor) else one
            if isinstance(value, Tensor):
                raw = value.detach().reshape(-1).view(torch.uint8)
                digest.update(f"{path}".encode() + raw.numpy().tobytes())
        return digest.hexdigest()

    def _loss(self) -> Tensor:
        source = torch.Generator().manual_seed(self.step)
        inputs = torch.randn(_BATCH, _FEATURES, generator=source)
        targets = inputs.roll(1, dims=1).sin()
        rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        found = self.model(inputs.chunk(ranks)[rank].to(self._type))
        wrong: Tensor = (found - targets.chunk(ranks)[rank]).double().square().sum() / _BATCH
        return wrong


def _made(depth: int) -> nn.Sequential:
    hidden = [nn.Sequential(nn.Linear(_WIDTH, _WIDTH), nn.Tanh()) for _ in range(depth)]
    return nn.Sequential(nn.Linear(_FEATURES, _WIDTH), *hidden, nn.Linear(_WIDTH, _FEATURES))


def _sharded(model: nn.Sequential) -> nn.Sequential:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (*model, model):
        unit = fully_shard(part, mesh=mesh)
        unit.set_gradient_divide_factor(1.0)  # the loss is divided by the batch of all ranks
        unit.set_force_sum_reduction_for_comms(enable=True)
    return model


def _summed(loss: Tensor) -> float:
    if dist.is_initialized():
        dist.all_reduce(loss)
    return loss.item()


def saved_at(root: Path, *steps: int, **options: Any) -> Learner:
    """A learner that saved after these steps and trained no further."""
    learner = Learner(root, **options)
    learner.load()
    for step in steps:
        learner.learn(step - learner.step)
        learner.save()
    learner.checkpointer.wait()
    return learner


def names_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


class HeldStore(LocalStore):
    """Its first file waits until it may go on: a pipe instead of a sleep."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._read, self._write = os.pipe()

    def writer(self, checkpoint: str) -> StorageWriter:
        os.read(self._read, 1)
        return super().writer(checkpoint)

    def go_on(self, *, saves: int = 1) -> None:
        os.write(self._write, b"." * saves)
