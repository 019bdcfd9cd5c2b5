"""Makes a plain model train on many ranks, from the outside: the model itself knows nothing of it.

The order is the one that works together: recompute, compile, shard.
"""

import torch
from torch import nn

from training.choices import Precision
from training.config import TrainConfig
from training.models.llama import Transformer
from training.parallel.accumulation import begin_part
from training.parallel.blocks import prepare
from training.parallel.groups import make_mesh
from training.parallel.prefetch import gather_ahead
from training.parallel.sharding import Sharding
from training.world import World

__all__ = ["begin_part", "shard", "weights_device"]


def shard(model: Transformer, *, world: World, config: TrainConfig) -> None:
    """Make every parameter a DTensor, in place; of a model on the meta device nothing is allocated.

    The embedding, each block, and the last norm with the head are gathered and reduced each by itself, so
    that one computes while the next is on its way.

    Raises:
        ConfigError: The ranks cannot be divided as asked.
    """
    mesh = make_mesh(config, world)
    if config.precision is Precision.BF16_PURE:
        model.to(torch.bfloat16)
    prepare(model.blocks.values(), recomputed=config.activation_checkpointing, compiled=config.compile)
    sharding = Sharding.of(config, mesh)
    blocks: list[nn.Module] = list(model.blocks.values())
    units = [sharding.apply(unit) for unit in (model.embedding, *blocks)]
    # The backward pass begins with the last unit: to give it up in between would gather it twice.
    units.append(sharding.apply_kept(model.norm, model.head))
    sharding.apply(model)
    if sharding.gathers:
        gather_ahead(units, count=config.prefetch_blocks)


def weights_device(config: TrainConfig, world: World) -> torch.device:
    """Where sharded weights are kept."""
    return torch.device("cpu") if config.cpu_offload else world.device
