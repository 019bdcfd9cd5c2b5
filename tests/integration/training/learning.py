"""A few steps of a small model, by the parts of the training program alone: what its loss becomes."""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from training.config import TrainConfig
from training.config.choices import Strategy
from training.config.decoder_shape import ModelShape
from training.models.float8 import convert
from training.models.init import initialise
from training.models.loss import cross_entropy
from training.models.transformer import Transformer
from training.optim import clip, learning_rate, make_optimizer, step_if_finite
from training.parallel.sharding import allocate, begin_part, shard
from training.ranks.meshes import with_shares
from training.ranks.world import World

SHAPE = ModelShape(layers=2, width=64, heads=4, kv_heads=2, hidden=176, vocabulary=128, sequence_length=32)
BATCH = 8
STRATEGIES = tuple(one for one in Strategy if one is not Strategy.TP)
"""That shard; matrices divided among ranks have tests of their own."""
_SUCCESSOR = torch.arange(128) * 37 + 11


def sharded(config: TrainConfig, world: World, shape: ModelShape = SHAPE) -> Transformer:
    with torch.device("meta"):
        model = Transformer(shape)
    if config.precision.is_float8:
        convert(model, config, world)
    shard(model, world=world, config=config)
    allocate(model, world=world, config=config)
    initialise(model, seed=config.seed, layers=shape.layers)
    return model


def tokens_of(step: int) -> Tensor:
    """Of all ranks; each token but a few follows from the one before it."""
    source = torch.Generator().manual_seed(step)
    token = torch.randint(128, (BATCH,), generator=source)
    tokens = [token]
    for _ in range(SHAPE.sequence_length):
        chance = torch.rand(BATCH, generator=source) < 0.1
        token = torch.where(chance, torch.randint(128, (BATCH,), generator=source), _SUCCESSOR[token] % 128)
        tokens.append(token)
    return torch.stack(tokens, dim=1)


def loss_of(model: Transformer, tokens: Tensor) -> Tensor:
    """The part of these sequences in the mean over all of the batch, in fp64."""
    losses = cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    return losses.sum(dtype=torch.float64) / (BATCH * SHAPE.sequence_length)


def trained(
    config: TrainConfig,
    world: World,
    *,
    steps: int,
    model: Transformer | None = None,
    optimizer: Optimizer | None = None,
) -> tuple[Transformer, Optimizer, list[float]]:
    """The loss of each step, over all ranks."""
    world = with_shares(world, config)
    model = model or sharded(config, world)
    optimizer = optimizer or make_optimizer(model, config)
    losses = []
    for step in range(1, steps + 1):
        mine = tokens_of(step).chunk(world.data_ranks)[world.data_rank]
        loss = _accumulated(model, mine.chunk(config.gradient_accumulation_steps), config)
        norm = clip(model, config.grad_clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, peak=config.lr, warmup_steps=5, steps=steps)
        step_if_finite(optimizer, norm)
        optimizer.zero_grad()
        losses.append(world.summed(loss).item())
    return model, optimizer, losses


def _accumulated(model: Transformer, parts: Sequence[Tensor], config: TrainConfig) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for number, part in enumerate(parts, 1):
        begin_part(model, is_last=number == len(parts), strategy=config.strategy)
        loss = loss_of(model, part)
        loss.backward()
        total += loss.detach()
    return total


def sha256(tensors: Sequence[Tensor]) -> str:
    digest = hashlib.sha256()
    for one in tensors:
        digest.update(one.detach().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
