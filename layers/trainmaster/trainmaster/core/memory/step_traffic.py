"""Bytes that a rank of the training program receives in a step, inside its host and from others.

Closed arithmetic, nothing is run: what FSDP gathers and reduces follows from the shapes, to the padding of
rows. An algorithm that moves as little as possible is assumed: of a tensor that n ranks gather, or reduce
and scatter, each receives (n - 1) / n, of one that they all-reduce twice that, and each host receives once
what it lacks. Every rank sends as much as it receives. Left out: votes and norms of a step (a few numbers),
checkpoints, data, and headers.

Sources: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, J. Parallel
Distrib. Comput. 69 (2009); Rajbhandari et al., ZeRO, arXiv 1910.02054, section 7; Korthikanti et al.,
Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, section 4.2.2 (tensor with
sequence parallel); PyTorch documentation, fully_shard.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainmaster.core.memory.footprint import KEEPS_GATHERED, Cluster, shards, tensor_ranks
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Strategy
from trainmaster.core.memory.training_runs import Run
from trainmaster.core.memory.transformer_shapes import elements

_TERM = 4
"""Bytes of a number of the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """Bytes that a rank receives in a step, averaged over the ranks of a host."""

    inside_host: int = 0
    between_hosts: int = 0

    def __add__(self, other: "Received") -> "Received":
        return Received(
            inside_host=self.inside_host + other.inside_host,
            between_hosts=self.between_hosts + other.between_hosts,
        )

    @property
    def total(self) -> int:
        return self.inside_host + self.between_hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraffic:
    weights: Received
    """Weights that are gathered."""
    gradients: Received
    """Gradients that are reduced and scattered to their shards."""
    copies: Received
    """Gradients that copies of the model, or of its shards, sum by all-reduce."""
    activations: Received
    """Exchanged by the ranks that divide matrices, with their terms of the loss and shared gradients."""

    @property
    def sharding(self) -> Received:
        """Return the traffic that FSDP can overlap with the computation."""
        return self.weights + self.gradients + self.copies

    @property
    def total(self) -> Received:
        return self.sharding + self.activations


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that exchange something: so many on each of these hosts."""

    hosts: int
    on_host: int

    @classmethod
    def of(cls, ranks: int, *, stride: int, ranks_per_host: int) -> "Group":
        """Lay out ``ranks`` ranks over hosts, each ``stride`` after the one before."""
        on_host = max(1, min(ranks, ranks_per_host // stride))
        return cls(hosts=math.ceil(ranks / on_host), on_host=on_host)

    @property
    def size(self) -> int:
        return self.hosts * self.on_host

    def gathering(self, whole: int) -> Received:
        """Gather a tensor of ``whole`` bytes; reducing and scattering it moves the same, the other way."""
        # Each rank lacks all but its own part. A host receives once what its ranks lack together, and they
        # share that.
        together = whole * (self.size - 1) // self.size
        between = whole * (self.hosts - 1) // (self.hosts * self.on_host)
        return Received(inside_host=together - between, between_hosts=between)

    def reducing(self, whole: int) -> Received:
        """All-reduce ``whole`` bytes: reduce and scatter, then gather."""
        return self.gathering(2 * whole)


def step_traffic(run: Run, cluster: Cluster) -> StepTraffic:
    """Count what a rank receives in one optimizer step, all its parts together."""
    tensor, per_host = tensor_ranks(run, cluster), cluster.ranks_per_host
    copy = shards(run, cluster)
    mine, among = replace(run, shape=run.shape.on_tensor_rank(tensor)), max(1, copy // tensor)
    dividing = Group.of(tensor, stride=1, ranks_per_host=per_host)
    sharding = Group.of(among, stride=tensor, ranks_per_host=per_host)
    copying = Group.of(max(1, cluster.world_size // copy), stride=copy, ranks_per_host=per_host)
    summed = mine.trained_shard(among) * run.summed_width
    return StepTraffic(
        weights=sharding.gathering(_gathered(mine, among)),
        gradients=sharding.gathering(summed * among * run.accumulation),
        copies=copying.reducing(summed),
        activations=_divided(run, cluster, dividing) if tensor > 1 else Received(),
    )


def _gathered(run: Run, among: int) -> int:
    """Return the bytes gathered in a step: blocks and the embedding twice if they are freed in between.

    The last unit is kept; a frozen embedding is gathered again, too.
    """
    shape = run.shape
    adapters = shape.adapters(run.lora_targets, run.lora_rank) if run.lora_rank else ()
    blocks = shape.layers * elements((*shape.block, *adapters), among)
    embedding, head = elements(shape.embedding, among), elements(shape.head, among)
    if run.strategy in KEEPS_GATHERED:
        times, whole = 1, blocks + embedding + head
    else:
        times, whole = run.accumulation, 2 * (blocks + embedding) + head
    return 0 if run.strategy is Strategy.NO_SHARD else times * whole * among * run.computed_width


def _divided(run: Run, cluster: Cluster, group: Group) -> Received:
    """Count the bytes of tokens, loss terms and undivided gradients that a tensor group exchanges."""
    shape, width = run.shape, run.computed_width
    samples = math.ceil(run.batch_size * group.size / (cluster.world_size * run.accumulation))
    samples *= run.accumulation
    again = run.activation_checkpointing is not ActivationCheckpointing.NONE
    tokens = samples * shape.sequence_length * shape.width * width
    terms = samples * shape.loss_terms * _TERM
    whole = shape.shared_gradients(group.size) * width * run.accumulation
    return _sum(
        [
            group.gathering(tokens * shape.exchanges(group.size, again=again)),
            group.gathering(terms * group.size) + group.reducing(terms),
            group.reducing(whole),
        ]
    )


def _sum(parts: Iterable[Received]) -> Received:
    return sum(parts, Received())
