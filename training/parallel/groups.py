"""Which ranks share one copy of the model."""

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.choices import Strategy
from training.config import TrainConfig
from training.errors import ConfigError
from training.world import World

HYBRID = {Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2}


def ranks_of_a_copy(config: TrainConfig, world: World) -> int:
    """How many ranks divide one copy of the model among them.

    Raises:
        ConfigError: The groups of a hybrid strategy do not come out even, or divide nothing.
    """
    if config.strategy is Strategy.NO_SHARD:
        return 1
    if config.strategy not in HYBRID or world.size == 1:
        return world.size
    size = config.shard_group_size or world.ranks_per_host
    asked = f"shard_group_size {size}" + ("" if config.shard_group_size else " (the ranks of a host)")
    if size == 1:
        raise ConfigError([f"{asked} divides nothing: set another, or strategy full_shard or no_shard"])
    if world.size % size:
        raise ConfigError([f"{asked} does not divide {world.size} ranks"])
    return size


def make_mesh(config: TrainConfig, world: World) -> DeviceMesh:
    """One dimension, or (copies, shards) where both are more than one. Every rank must call."""
    size = ranks_of_a_copy(config, world)
    copies = world.size // size
    if copies > 1 and size > 1:
        return init_device_mesh(world.device.type, (copies, size), mesh_dim_names=("copies", "shards"))
    return init_device_mesh(world.device.type, (world.size,))
