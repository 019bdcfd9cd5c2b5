"""Arranges the ranks of a job: copies of the model, shards of a copy, parts of matrices.

Neighbouring ranks share a host, so what exchanges most lies innermost: the ranks of a tensor group are in one
host, those of a copy in one or a few, and only copies meet across the network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.config.choices import Strategy
from training.config.decoder_shape import ModelShape
from training.config.sections import DivisionOptions
from training.config.vision_shape import Shape
from training.errors import ConfigError
from training.ranks.world import World

_TENSOR = "tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshShape:
    copies: int
    """Copies of the model."""
    shards: int
    """Shards that FSDP divides a copy into."""
    tensor: int
    """Ranks that divide each matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meshes:
    data: DeviceMesh
    """Mesh for FSDP: one dimension, or (copies, shards) where both are more than one."""
    tensor: DeviceMesh | None
    """Mesh of the ranks that divide each matrix; None if matrices are not divided."""


def with_shares(world: World, config: DivisionOptions) -> World:
    """Return the same ranks, with how many of them work on the same sequences.

    Raises:
        ConfigError: The ranks, or the model, cannot be divided as the options ask.
    """
    return replace(world, ranks_per_share=mesh_shape(config, world).tensor)


def make_meshes(config: DivisionOptions, world: World) -> Meshes:
    """Make the meshes of a job; every rank must call. Raises ConfigError."""
    shape, device = mesh_shape(config, world), world.device.type
    sizes = {"copies": shape.copies, "shards": shape.shards}
    if config.strategy is Strategy.NO_SHARD:
        del sizes["shards"]
    elif shape.copies == 1:
        del sizes["copies"]
    if shape.tensor == 1:
        names = tuple(sizes) if len(sizes) > 1 else None
        return Meshes(data=init_device_mesh(device, tuple(sizes.values()), mesh_dim_names=names), tensor=None)
    whole = init_device_mesh(device, (*sizes.values(), shape.tensor), mesh_dim_names=(*sizes, _TENSOR))
    return Meshes(data=whole[tuple(sizes)], tensor=whole[_TENSOR])


def mesh_shape(config: DivisionOptions, world: World) -> MeshShape:
    """Decide how ranks and model are divided.

    Raises:
        ConfigError: The ranks or the model do not come out even, or a group would divide nothing.
    """
    tensor = _tensor_ranks(config, world)
    size = _copy_size(config, world, tensor)
    return MeshShape(copies=world.size // size, shards=size // tensor, tensor=tensor)


def ranks_of_a_copy(config: DivisionOptions, world: World) -> int:
    """Count the ranks that divide one copy of the model among them. Raises ConfigError."""
    shape = mesh_shape(config, world)
    return shape.shards * shape.tensor


def _tensor_ranks(config: DivisionOptions, world: World) -> int:
    is_all = config.strategy is Strategy.TP
    ranks, per_host = world.size if is_all else config.tensor_parallel, world.ranks_per_host
    option = f"strategy tp on {ranks} ranks" if is_all else f"tensor_parallel {ranks}"
    if world.size % ranks:
        raise ConfigError([f"{option} does not divide {world.size} ranks"])
    if world.size > per_host and per_host % ranks:
        instead = f"a strategy that shards, with tensor_parallel {per_host} or a divisor of it"
        raise ConfigError([f"{option} leaves hosts of {per_host} ranks, for a slow network: take {instead}"])
    if wrong := indivisible(config.shape, ranks):
        dimensions = ", ".join(f"{name} {size}" for name, size in wrong.items())
        near = max(
            divisor
            for divisor in range(1, ranks)
            if not ranks % divisor and not indivisible(config.shape, divisor)
        )
        instead = f"tensor_parallel {near} does" if near > 1 else "take strategy full_shard without it"
        raise ConfigError([f"{option} does not divide {dimensions}; {instead}"])
    return ranks


def indivisible(shape: Shape, ranks: int) -> Mapping[str, int]:
    """Return the dimensions of a model, by name, that so many ranks of a tensor group cannot divide.

    An image's tokens need not be divided; the model's width is, with the heads.
    """
    sizes = {"heads": shape.heads, "hidden": shape.hidden}
    if isinstance(shape, ModelShape):
        sizes |= {"vocabulary": shape.vocabulary, "sequence_length": shape.sequence_length}
    indivisible_sizes = {name: size for name, size in sizes.items() if size % ranks}
    if isinstance(shape, ModelShape) and shape.kv_heads % ranks and ranks % shape.kv_heads:
        indivisible_sizes["kv_heads"] = shape.kv_heads
    return indivisible_sizes


def _copy_size(config: DivisionOptions, world: World, tensor: int) -> int:
    if config.strategy is Strategy.NO_SHARD:
        return tensor
    if not config.strategy.is_hybrid or world.size == 1:
        return world.size
    size, per_host = config.shard_group_size or world.ranks_per_host, world.ranks_per_host
    option = f"shard_group_size {size}" + ("" if config.shard_group_size else " (the ranks of a host)")
    problem = ""
    if size == 1:
        problem = f"{option} divides nothing: set another, or strategy full_shard or no_shard"
    elif world.size % size:
        problem = f"{option} does not divide {world.size} ranks"
    elif size % tensor:
        problem = f"tensor_parallel {tensor} does not divide {option}"
    elif size % per_host and per_host % size:
        problem = (
            f"{option} straddles hosts of {per_host} ranks: take a divisor of {per_host}, or whole hosts"
        )
    if problem:
        raise ConfigError([problem])
    return size
