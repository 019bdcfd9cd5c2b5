"""A plan of a run of the training program: what it needs of which instances, as JSON and as lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

from trainmaster.core.costs.prices import USD_PER_HOUR
from trainmaster.core.memory.accelerators import BY_TYPE, Accelerators
from trainmaster.core.memory.footprint import (
    USABLE_PERCENT,
    Cluster,
    Estimate,
    cluster_of,
    estimate,
    shards,
    tensor_ranks,
)
from trainmaster.core.memory.memory_remedies import remedies
from trainmaster.core.memory.scaling_bound import SPEEDS
from trainmaster.core.memory.strategy_choice import Choice, choice_json, choice_lines, choices
from trainmaster.core.memory.training_runs import Optimizer, Run

_GIB = 2**30
_INSTANCES = re.compile(r"(ml\.[a-z0-9.-]+)=([1-9][0-9]{0,3})")

Instances = tuple[tuple[str, int], ...]
"""Types and how many of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    name: str
    """Of the model."""
    run: Run
    instances: Instances
    cluster: Cluster
    estimate: Estimate


def read_instances(text: str) -> Instances:
    """Of `ml.p5.48xlarge=16`, several with a comma or a space between them.

    Raises:
        ValueError: Which part is wrong, and why.
    """
    found: list[tuple[str, int]] = []
    for part in text.replace(",", " ").split():
        matched = _INSTANCES.fullmatch(part)
        if matched is None:
            raise ValueError(f"instances: {part!r} is not TYPE=COUNT, as in ml.p5.48xlarge=16")
        instance_type, count = matched.groups()
        accelerators = BY_TYPE.get(instance_type)
        if accelerators is None or not accelerators.are_gpus:
            raise ValueError(f"instances: {instance_type} has no GPUs that are known here")
        found.append((instance_type, int(count)))
    if not found:
        raise ValueError("instances: name at least one, as in ml.p5.48xlarge=16")
    return tuple(found)


def plan(name: str, run: Run, instances: Instances) -> Plan:
    cluster = cluster_of([(BY_TYPE[instance_type], count) for instance_type, count in instances])
    run = run.on(gpus_with_bf16=cluster.multiplies_bf16)
    return Plan(name=name, run=run, instances=instances, cluster=cluster, estimate=estimate(run, cluster))


def as_json(found: Plan) -> dict[str, object]:
    """Bytes; ``host_bytes_per_rank`` only where cpu_offload puts something there."""
    told = found.estimate
    host = {"host_bytes_per_rank": told.host_bytes_per_rank} if found.run.cpu_offload else {}
    return {
        "params": told.params,
        "world_size": told.world_size,
        "bytes_per_rank": asdict(told.bytes_per_rank),
        **host,
        "checkpoint_bytes": told.checkpoint_bytes,
        "fits": told.fits,
        "headroom_bytes": told.headroom_bytes,
        "strategies": [choice_json(one) for one in strategies(found)],
    }


def strategies(found: Plan) -> Sequence[Choice]:
    """That as planned and others that fit; no bound of the scaling where instances differ."""
    types = {instance_type for instance_type, _ in found.instances}
    speeds = SPEEDS.get(types.pop()) if len(types) == 1 else None
    return choices(found.run, found.cluster, speeds)


def as_lines(found: Plan) -> Iterator[str]:
    yield _what(found)
    yield _how(found)
    yield ""
    yield from _table(found)
    yield ""
    yield from _verdict(found)
    if found.cluster.world_size > 1:
        yield ""
        yield from choice_lines(strategies(found))


def _what(found: Plan) -> str:
    where = " + ".join(f"{count}x {instance_type}" for instance_type, count in found.instances)
    price = usd_per_hour(found.instances)
    costs = "" if price is None else f", {price:.2f} USD an hour on demand"
    return f"{found.name}: {found.estimate.params / 1e9:.2f}B parameters on {where}{costs}"


def _how(found: Plan) -> str:
    run, cluster = found.run, found.cluster
    tokens = f"{run.batch_size} {run.shape.samples} of {run.shape.sequence_length} tokens a step"
    parts = f" in {run.accumulation} parts" if run.accumulation > 1 else ""
    how = f"{run.precision}, adapters of rank {run.lora_rank}" if run.lora_rank else run.precision
    how += f", {run.optimizer}" if run.optimizer is not Optimizer.ADAMW else ""
    tensor = f", tensor_parallel {run.tensor_parallel}" if run.tensor_parallel > 1 else ""
    return (
        f"{how}, {run.strategy} over {shards(run, cluster)} of {cluster.world_size} ranks{tensor}, "
        f"activation_checkpointing {run.activation_checkpointing}, {tokens}{parts}"
    )


def _table(found: Plan) -> Iterator[str]:
    told, gpu = found.estimate, _smallest(found.instances)
    each = told.bytes_per_rank
    yield f"{'on each GPU':<16}{'GiB':>8}"
    yield _row("weights", each.params)
    yield _row("gradients", each.grads)
    yield _row("optimizer", each.optimizer)
    yield _row("a step", each.activations, "activations, gathered weights, logits: an estimate")
    yield _row("together", each.total)
    usable = gpu.memory_bytes * USABLE_PERCENT // 100
    yield _row("usable", usable, f"{USABLE_PERCENT} % of {gpu.kind}'s {gpu.memory_bytes / _GIB:.1f}")
    if told.host_bytes_per_rank:
        yield _row(
            "in the host", told.host_bytes_per_rank, f"for each of {found.cluster.ranks_per_host} ranks"
        )
    whole = told.checkpoint_bytes
    yield _row("a checkpoint", whole // told.world_size, f"a rank, {whole / _GIB:.1f} together")


def _row(name: str, size: int, remark: str = "") -> str:
    return f"{name:<16}{size / _GIB:>8.1f}  {remark}".rstrip()


def _verdict(found: Plan) -> Iterator[str]:
    told = found.estimate
    yield from _refused(found.run, found.cluster)
    if told.fits:
        yield f"Fits, {told.headroom_bytes / _GIB:.1f} GiB to spare."
        return
    yield f"Does not fit: {-told.headroom_bytes / _GIB:.1f} GiB more are needed on each rank."
    would_do = remedies(found.run, found.cluster)
    yield "What would fit:" if would_do else "No known setting would fit: use larger GPUs or a smaller model."
    yield from (f"  {text}" for text in would_do)


def _refused(run: Run, cluster: Cluster) -> Iterator[str]:
    """What the program would not start with, whatever the memory."""
    ranks, copy, tensor = cluster.world_size, shards(run, cluster), tensor_ranks(run, cluster)
    if cluster.ranks_per_host % tensor:
        told = f"it does not divide the {cluster.ranks_per_host} GPUs of a host"
        yield f"The program refuses tensor_parallel {tensor}: {told}."
        return
    if wrong := run.shape.indivisible(tensor):
        told = ", ".join(f"{name} {size}" for name, size in wrong.items())
        yield f"The program refuses tensor_parallel {tensor}: it does not divide {told}."
        return
    shares = ranks // tensor
    parts = shares * run.accumulation
    if run.batch_size % parts:
        by = f"{shares} {'ranks' if tensor == 1 else 'groups'}"
        by += f" and {run.accumulation} parts" if run.accumulation > 1 else ""
        near = -(-run.batch_size // parts) * parts
        yield f"The program refuses batch_size {run.batch_size}: it does not divide by {by}; {near} does."
    if ranks % copy:
        yield f"The program refuses shard_group_size {copy}: it does not divide {ranks} ranks."


def _smallest(instances: Instances) -> Accelerators:
    """The GPU that the plan has to fit into."""
    return min((BY_TYPE[instance_type] for instance_type, _ in instances), key=lambda one: one.memory_bytes)


def usd_per_hour(instances: Instances) -> Decimal | None:
    """By the shipped prices; None where one is missing."""
    prices = [USD_PER_HOUR.get(instance_type) for instance_type, _ in instances]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return sum((price * count for price, (_, count) in zip(known, instances, strict=True)), Decimal(0))
