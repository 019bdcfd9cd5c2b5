"""How much memory the training program needs on each rank: closed arithmetic, nothing is run.

State is exact: a parameter costs 4 bytes of fp32 weight, 4 of gradient and 8 of AdamW's two moments, and with
``bf16_pure`` 2, 2 and 6 (bf16 moments and the rest of Kahan's sum); sharding divides it by rows, and the rank
with most rows counts. What a step needs on top is estimated: tensors kept for the backward pass (counted from
the model's code), gathered weights, gradients on their way to their shards, and logits. Sources: PyTorch
documentation, fully_shard; Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models,
arXiv 2205.05198.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmaster.core.memory.accelerators import Accelerators
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision, Strategy
from trainmaster.core.memory.training_runs import Run

USABLE_PERCENT = 92
"""Share of a GPU's memory; the rest goes to the CUDA context, NCCL's buffers and fragmentation. A guess."""
USABLE_HOST_PERCENT = 85
"""Share of a host's memory under cpu_offload; the rest is for the system, the processes and the data. A
guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The GPUs of all instances that train together: one rank each."""

    hosts: int
    ranks_per_host: int
    memory_bytes: int
    """Bytes of the smallest GPU."""
    host_memory_bytes: int | None = None
    """Bytes of the smallest host; None if unknown, and then the host's memory is not judged."""
    multiplies_bf16: bool = True
    """True if every GPU has bf16 units."""

    @property
    def world_size(self) -> int:
        return self.hosts * self.ranks_per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesPerRank:
    """Bytes that one rank needs on its GPU."""

    params: int
    grads: int
    optimizer: int
    activations: int
    """All that a step needs on top of the state."""

    @property
    def total(self) -> int:
        return self.params + self.grads + self.optimizer + self.activations


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    params: int
    """Parameters of the whole model."""
    world_size: int
    bytes_per_rank: BytesPerRank
    host_bytes_per_rank: int
    """Bytes that cpu_offload keeps in the host's memory instead of the GPU's."""
    checkpoint_bytes: int
    """Bytes of weights and optimizer, all ranks together."""
    headroom_bytes: int
    """Bytes left to a rank in the usable memory of its GPU, or in its part of the host where that is less;
    negative: the bytes that are missing."""

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0


_STATE = dict.fromkeys(Precision, (4, 4)) | {Precision.BF16_PURE: (2, 2)}
"""Bytes of weight and gradient of one parameter."""
_FROZEN = dict.fromkeys(Precision, 2) | {Precision.FP32: 4}
"""Bytes of a frozen weight, beside which adapters are trained: its width in the computation."""
KEEPS_GATHERED = {Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD_ZERO2, Strategy.NO_SHARD}
"""Strategies that keep weights gathered from a block's forward to its backward pass; no_shard keeps the
copies in the precision of the computation."""


_ADDS_EACH_PART = {Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP, Strategy.TP}
"""Strategies that add each part's gradients into the shards at once, so that no whole gradient waits."""


def estimate(run: Run, cluster: Cluster) -> Estimate:
    """Estimate what each rank of a run needs; precision ``auto`` is resolved for these GPUs."""
    run = run.on(gpus_with_bf16=cluster.multiplies_bf16)
    weight, gradient = _STATE[run.precision]
    tensor = tensor_ranks(run, cluster)
    # A tensor group divides each matrix; the groups then divide what is left of it by rows.
    mine, among = replace(run, shape=run.shape.on_tensor_rank(tensor)), shards(run, cluster) // tensor
    trained = mine.trained_shard(among)
    frozen = mine.shape.largest_shard(among) if run.lora_rank else 0
    weights = trained * weight + frozen * _FROZEN[run.precision]
    state = (weights, trained * gradient, mine.moment_bytes(among))
    params, grads, moments = (0, 0, 0) if run.cpu_offload else state
    per_rank = BytesPerRank(
        params=params, grads=grads, optimizer=moments, activations=_step_bytes(mine, cluster, tensor)
    )
    on_host = sum(state) if run.cpu_offload else 0
    return Estimate(
        params=run.shape.params,
        world_size=cluster.world_size,
        bytes_per_rank=per_rank,
        host_bytes_per_rank=on_host,
        checkpoint_bytes=run.trained_shard(1) * weight + run.moment_bytes(1),
        headroom_bytes=_headroom(cluster, gpu=per_rank.total, host=on_host),
    )


def shards(run: Run, cluster: Cluster) -> int:
    """Return the number of ranks among which one copy of the model is divided."""
    match run.strategy:
        case Strategy.FULL_SHARD | Strategy.SHARD_GRAD_OP | Strategy.TP:
            return cluster.world_size
        case Strategy.HYBRID_SHARD | Strategy.HYBRID_SHARD_ZERO2:
            return min(run.shard_group_size or cluster.ranks_per_host, cluster.world_size)
        case Strategy.NO_SHARD:
            return tensor_ranks(run, cluster)


def tensor_ranks(run: Run, cluster: Cluster) -> int:
    """Return the number of ranks that divide each matrix; the others divide the rest of it by rows."""
    return cluster.world_size if run.strategy is Strategy.TP else run.tensor_parallel


def _headroom(cluster: Cluster, *, gpu: int, host: int) -> int:
    left = cluster.memory_bytes * USABLE_PERCENT // 100 - gpu
    if host and cluster.host_memory_bytes is not None:
        share = cluster.host_memory_bytes * USABLE_HOST_PERCENT // 100 // cluster.ranks_per_host
        left = min(left, share - host)
    return left


def _step_bytes(run: Run, cluster: Cluster, tensor: int) -> int:
    """Return the bytes that a step needs on top of the state.

    They are gathered weights, gradients, tensors kept for the backward pass, logits and theirs.

    ``run`` has the shape that one rank has of the model.
    """
    shape = run.shape
    width = run.computed_width
    # Ranks of one tensor group share their samples; a part of a step holds one accumulation's share of them.
    samples = math.ceil(run.batch_size * tensor / (cluster.world_size * run.accumulation))
    weights = _gathered_bytes(run, width) + _gradient_bytes(run, shards(run, cluster) // tensor, width)
    kept = shape.sequence_length * _kept(run, width, tensor) + shape.outside_bytes(width)
    return weights + samples * kept


def _kept(run: Run, width: int, tensor: int) -> int:
    """Return the bytes of a token: what the backward pass needs, and the block that it computes again."""
    again = run.activation_checkpointing is not ActivationCheckpointing.NONE
    return kept_per_token(run, width, tensor) + (run.shape.whole_block(width, tensor) if again else 0)


def kept_per_token(run: Run, width: int, tensor: int = 1) -> int:
    """Return the bytes that all blocks keep of a token from the forward to the backward pass."""
    shape = run.shape
    match run.activation_checkpointing:
        case ActivationCheckpointing.NONE:
            per_block = shape.whole_block(width, tensor)
        case ActivationCheckpointing.SELECTIVE:
            per_block = shape.costly_part(width)
        case ActivationCheckpointing.FULL:
            per_block = shape.width * width // shape.token_ranks(tensor)
    return shape.layers * per_block


def _gathered_bytes(run: Run, width: int) -> int:
    """Return the bytes of whole weights beside the shards.

    They are all weights, or those of the head, and of this unit and the next: a block each, or several.
    """
    if run.strategy in KEEPS_GATHERED:
        return run.shape.params * width
    blocks = min((1 + max(run.prefetch_blocks, 1)) * run.blocks_of_a_unit, run.shape.layers)
    return (run.shape.head_params + blocks * run.shape.block_params) * width


def _gradient_bytes(run: Run, among: int, width: int) -> int:
    """Return the bytes of a block's gradients, computed and summed, and of sums kept between a step's parts.

    Copies and groups of ranks add up the parts of a step where they are, in the precision of the sum, which
    may be wider than that of the gradients.
    """
    on_its_way = run.blocks_of_a_unit * run.trained_in_block * (width + run.summed_width)
    if run.accumulation == 1 or run.strategy in _ADDS_EACH_PART:
        return on_its_way
    _, gradient = _STATE[run.precision]
    return on_its_way + run.trained_shard(among) * max(0, run.summed_width - gradient)


def cluster_of(instances: Sequence[tuple[Accelerators, int]]) -> Cluster:
    """Describe instances, given with their counts, as one cluster.

    Where they differ the smallest counts for all.
    """
    hosts = [instance.host_memory_bytes for instance, _ in instances]
    known = [memory for memory in hosts if memory is not None]
    return Cluster(
        hosts=sum(count for _, count in instances),
        ranks_per_host=min(instance.count for instance, _ in instances),
        memory_bytes=min(instance.memory_bytes for instance, _ in instances),
        host_memory_bytes=min(known) if len(known) == len(hosts) else None,
        multiplies_bf16=all(instance.multiply_bf16 for instance, _ in instances),
    )
