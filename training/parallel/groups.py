"""Which ranks share one copy of the model."""

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.choices import Strategy
from training.config import TrainConfig
from training.errors import ConfigError
from training.world import World

_COPIES, _SHARDS = "copies", "shards"
HYBRID = {Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2}


def ranks_of_a_copy(config: TrainConfig, world: World) -> int:
    """How many ranks divide one copy of the model among them.

    Raises:
        ConfigError: The groups of a hybrid strategy do not come out even.
    """
    if config.strategy is Strategy.NO_SHARD:
        return 1
    if config.strategy not in HYBRID:
        return world.size
    size = config.shard_group_size or world.ranks_per_host
    if world.size % size:
        what = "shard_group_size" if config.shard_group_size else "the number of ranks of a host,"
        raise ConfigError(
            [f"{what} {size} does not divide {world.size} ranks into groups for {config.strategy}"]
        )
    return size


def make_mesh(config: TrainConfig, world: World) -> DeviceMesh:
    """One dimension, or (copies, shards) where both are more than one. Every rank must call."""
    size = ranks_of_a_copy(config, world)
    if size == world.size:
        return init_device_mesh(world.device.type, (size,), mesh_dim_names=(_SHARDS,))
    if size == 1:
        return init_device_mesh(world.device.type, (world.size,), mesh_dim_names=(_COPIES,))
    shape = (world.size // size, size)
    return init_device_mesh(world.device.type, shape, mesh_dim_names=(_COPIES, _SHARDS))
