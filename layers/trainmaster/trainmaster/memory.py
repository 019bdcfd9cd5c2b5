"""How much GPU memory the training program needs on each rank: closed arithmetic, nothing is run.

State is exact: a parameter costs 4 bytes of fp32 weight, 4 of gradient and 8 of AdamW's two moments, and with
``bf16_pure`` 2, 2 and 6 (bf16 moments and the rest of Kahan's sum); sharding divides it. What a step needs
on top is estimated: tensors kept for the backward pass (counted from the model's code), gathered weights and
logits. Sources: PyTorch documentation, fully_shard; Korthikanti et al., Reducing Activation Recomputation in
Large Transformer Models, arXiv 2205.05198.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from trainmaster.accelerators import Accelerators
from trainmaster.training_runs import ModelShape, Precision, Run, Strategy

USABLE_PERCENT = 92
"""Of a GPU's memory; the rest goes to the CUDA context, NCCL's buffers and fragmentation. A guess."""
MOST_HOSTS = 128
"""As far as the search for what would do goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The GPUs of all instances that train together: one rank each."""

    hosts: int
    ranks_per_host: int
    memory_bytes: int
    """Of the smallest GPU."""

    @property
    def world_size(self) -> int:
        return self.hosts * self.ranks_per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesPerRank:
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
    """Of the whole model."""
    world_size: int
    bytes_per_rank: BytesPerRank
    checkpoint_bytes: int
    """Of all ranks together: weights and optimizer."""
    fits: bool
    headroom_bytes: int
    """What is left of the usable memory of a GPU; negative: what is missing."""


_STATE = {Precision.FP32: (4, 4, 8), Precision.BF16: (4, 4, 8), Precision.BF16_PURE: (2, 2, 6)}
"""Bytes of weight, gradient and optimizer of one parameter."""
_KEEPS_GATHERED = {Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD_ZERO2}


def estimate(run: Run, cluster: Cluster) -> Estimate:
    weight, gradient, optimizer = _STATE[run.precision]
    params = run.shape.params
    own = math.ceil(params / _shards(run.strategy, cluster))
    per_rank = BytesPerRank(
        params=own * weight,
        grads=own * gradient,
        optimizer=own * optimizer,
        activations=_step_bytes(run, cluster),
    )
    headroom = cluster.memory_bytes * USABLE_PERCENT // 100 - per_rank.total
    return Estimate(
        params=params,
        world_size=cluster.world_size,
        bytes_per_rank=per_rank,
        checkpoint_bytes=params * (weight + optimizer),
        fits=headroom >= 0,
        headroom_bytes=headroom,
    )


def _shards(strategy: Strategy, cluster: Cluster) -> int:
    match strategy:
        case Strategy.FULL_SHARD | Strategy.SHARD_GRAD_OP:
            return cluster.world_size
        case Strategy.HYBRID_SHARD | Strategy.HYBRID_SHARD_ZERO2:
            return cluster.ranks_per_host
        case Strategy.NO_SHARD:
            return 1


def _step_bytes(run: Run, cluster: Cluster) -> int:
    """Gathered weights, what the backward pass needs of the forward pass, logits and their gradients."""
    shape = run.shape
    width = 4 if run.precision is Precision.FP32 else 2
    sequences = math.ceil(run.batch_size / (cluster.world_size * run.accumulation))
    tokens = sequences * shape.sequence_length
    block = tokens * _kept_per_token(shape, width)
    if run.activation_checkpointing:
        kept = shape.layers * tokens * shape.width * width + block
    else:
        kept = shape.layers * block
    logits = tokens * shape.vocabulary * (width + 8)  # as computed; in fp32; their logarithms or gradients
    return _gathered_bytes(run, cluster, width) + kept + logits


def _kept_per_token(shape: ModelShape, width: int) -> int:
    """Of one block: inputs of matrices, attention and the gate; each norm two vectors and a number in fp32.

    Fused kernels of a GPU may keep less. Attention keeps a sum per head.
    """
    inputs = 5 * shape.width + 2 * shape.kv_width + 4 * shape.hidden
    norms = 2 * (2 * shape.width + 1)
    return inputs * width + (norms + shape.heads) * 4


def _gathered_bytes(run: Run, cluster: Cluster, width: int) -> int:
    """Whole weights beside the shards: all of them, or the root's and those of this block and the next."""
    if _shards(run.strategy, cluster) == 1 and run.precision is not Precision.BF16:
        return 0
    if run.strategy in _KEEPS_GATHERED:
        return run.shape.params * width
    return (run.shape.root_params + min(2, run.shape.layers) * run.shape.block_params) * width


def cluster_of(instances: Sequence[tuple[Accelerators, int]]) -> Cluster:
    """Of instances and their counts; where they differ the smallest speaks for all."""
    return Cluster(
        hosts=sum(count for _, count in instances),
        ranks_per_host=min(one.count for one, _ in instances),
        memory_bytes=min(one.memory_bytes for one, _ in instances),
    )


def remedy(run: Run, cluster: Cluster) -> str | None:
    """The smallest change after which it fits; None: nothing of that kind would do."""
    for text, changed in _changed(run, cluster):
        if estimate(changed, cluster).fits:
            return text
    for hosts in range(cluster.hosts + 1, MOST_HOSTS + 1):
        wider = replace(cluster, hosts=hosts)
        for text, changed in (("", run), *_changed(run, wider)):
            if estimate(changed, wider).fits:
                return f"{hosts} instances" + (f" with {text}" if text else "")
    return None


def _changed(run: Run, cluster: Cluster) -> Iterator[tuple[str, Run]]:
    """The run with other hyperparameters, with as few of them as possible first."""
    least_batch = cluster.world_size * run.accumulation
    changes: dict[str, dict[str, Any]] = {
        "activation_checkpointing true": {"activation_checkpointing": True},
        "strategy full_shard": {"strategy": Strategy.FULL_SHARD},
        f"batch_size {least_batch}": {"batch_size": min(run.batch_size, least_batch)},
    }
    useful = {text: fields for text, fields in changes.items() if replace(run, **fields) != run}
    for size in range(1, len(useful) + 1):
        for chosen in combinations(useful, size):
            fields = {name: value for text in chosen for name, value in useful[text].items()}
            yield " and ".join(chosen), replace(run, **fields)
