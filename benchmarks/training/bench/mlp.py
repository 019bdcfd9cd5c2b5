"""The article's model: a row of square matrices with nothing between them but a ReLU, to compare options on.

It is divided, recomputed and gathered ahead by the functions of the training program, layer by layer as its
blocks are; there are no tokens, so speed is in samples.
"""

import statistics
import time
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.training.bench.modes import BenchOptions, forget
from training.config import TrainConfig
from training.config.choices import Precision
from training.models.init import initialise
from training.optim import make_optimizer
from training.parallel.sharding import Sharding, gather_ahead, needs_fsdp, prepare
from training.ranks.meshes import make_meshes
from training.ranks.world import World

_GIB = 2**30


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.relu(self.linear(inputs))


class Mlp(nn.Module):
    def __init__(self, *, layers: int, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({str(number): Layer(width) for number in range(layers)})

    def forward(self, inputs: Tensor) -> Tensor:
        for block in self.blocks.values():
            inputs = block(inputs)
        return inputs


def made(config: TrainConfig, world: World, *, layers: int, width: int) -> Mlp:
    """Make the model as the training program makes its own: recompute, shard, allocate, fill."""
    with torch.device("meta"):
        model = Mlp(layers=layers, width=width)
    if config.precision is Precision.BF16_PURE:
        model.to(torch.bfloat16)
    prepare(model.blocks.values(), recomputed=config.activation_checkpointing, compiled=config.compile)
    if needs_fsdp(config, world):
        sharding = Sharding.of(config, make_meshes(config, world).data)
        units = [sharding.apply(block) for block in model.blocks.values()]
        sharding.apply(model)
        if sharding.gathers:
            gather_ahead(units, count=config.prefetch_blocks)
    model.to_empty(device=torch.device("cpu") if config.cpu_offload else world.device)
    initialise(model, seed=config.seed, layers=layers)
    return model


def _step(model: Mlp, optimizer: Optimizer, inputs: Tensor, target: Tensor) -> Tensor:
    loss: Tensor = nn.functional.mse_loss(model(inputs).float(), target)
    loss.backward()  # type: ignore[no-untyped-call]  # torch's
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def measured(
    config: TrainConfig, options: BenchOptions, world: World, *, layers: int, width: int
) -> dict[str, Any]:
    """Train on one batch, and return the median step, its memory, and the first and last loss."""
    model = made(config, world, layers=layers, width=width)
    source = torch.Generator().manual_seed(config.seed)
    kind = torch.float32 if config.precision is Precision.FP32 else torch.bfloat16
    inputs = torch.randn((config.batch_size, width), generator=source).to(world.device, kind)
    target = torch.rand((config.batch_size, width), generator=source).to(world.device)

    step = partial(_step, model, make_optimizer(model, config), inputs, target)
    first = float(step())
    for _ in range(options.warm_up - 1):
        step()
    world.accelerator.synchronize(world.device)
    seconds, loss = [], first
    for _ in range(options.laps):
        began = time.perf_counter()
        for _ in range(options.lap):
            last = step()
        loss = float(last)  # waits for the device
        seconds.append((time.perf_counter() - began) / options.lap)
    result = {
        "layers": layers,
        "width": width,
        "batch": config.batch_size,
        "step_seconds": seconds,
        "samples_s": config.batch_size / statistics.median(seconds),
        "memory_gib": world.accelerator.peak_memory(world.device) / _GIB,
        "losses": [first, loss],
    }
    del model, step
    forget(world.device)
    return result
