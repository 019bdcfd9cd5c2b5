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
from trainmaster.core.memory.program_shapes import OptimizerName
from trainmaster.core.memory.scaling_bound import SPEEDS
from trainmaster.core.memory.strategy_choice import Choice, choice_json, choice_lines, choices
from trainmaster.core.memory.training_runs import Run

_GIB = 2**30
_INSTANCES = re.compile(r"(ml\.[a-z0-9.-]+)=([1-9][0-9]{0,3})")

Instances = tuple[tuple[str, int], ...]
"""Instance types and how many of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    name: str
    """Name of the model."""
    run: Run
    instances: Instances
    cluster: Cluster
    estimate: Estimate


def read_instances(text: str) -> Instances:
    """Read ``ml.p5.48xlarge=16``; several are separated by commas or spaces.

    Raises:
        ValueError: A part is wrong; the message names it and says why.
    """
    instances: list[tuple[str, int]] = []
    for part in text.replace(",", " ").split():
        matched = _INSTANCES.fullmatch(part)
        if matched is None:
            raise ValueError(f"instances: {part!r} is not TYPE=COUNT, as in ml.p5.48xlarge=16")
        instance_type, count = matched.groups()
        accelerators = BY_TYPE.get(instance_type)
        if accelerators is None or not accelerators.are_gpus:
            raise ValueError(f"instances: {instance_type} has no GPUs that are known here")
        instances.append((instance_type, int(count)))
    if not instances:
        raise ValueError("instances: name at least one, as in ml.p5.48xlarge=16")
    return tuple(instances)


def plan(name: str, run: Run, instances: Instances) -> Plan:
    cluster = cluster_of([(BY_TYPE[instance_type], count) for instance_type, count in instances])
    run = run.on(gpus_with_bf16=cluster.multiplies_bf16)
    return Plan(name=name, run=run, instances=instances, cluster=cluster, estimate=estimate(run, cluster))


def as_json(planned: Plan) -> dict[str, object]:
    """Return the plan as JSON, in bytes.

    ``host_bytes_per_rank`` appears only if cpu_offload puts something there.
    """
    estimate = planned.estimate
    host = {"host_bytes_per_rank": estimate.host_bytes_per_rank} if planned.run.cpu_offload else {}
    return {
        "params": estimate.params,
        "world_size": estimate.world_size,
        "bytes_per_rank": asdict(estimate.bytes_per_rank),
        **host,
        "checkpoint_bytes": estimate.checkpoint_bytes,
        "fits": estimate.fits,
        "headroom_bytes": estimate.headroom_bytes,
        "strategies": [choice_json(choice) for choice in strategies(planned)],
    }


def strategies(planned: Plan) -> Sequence[Choice]:
    """Return the planned strategy and others that fit.

    They have no bound of the scaling if instance types differ.
    """
    types = {instance_type for instance_type, _ in planned.instances}
    speeds = SPEEDS.get(types.pop()) if len(types) == 1 else None
    return choices(planned.run, planned.cluster, speeds)


def as_lines(planned: Plan) -> Iterator[str]:
    yield _what(planned)
    yield _how(planned)
    yield ""
    yield from _table(planned)
    yield ""
    yield from _verdict(planned)
    if planned.cluster.world_size > 1:
        yield ""
        yield from choice_lines(strategies(planned))


def _what(planned: Plan) -> str:
    where = " + ".join(f"{count}x {instance_type}" for instance_type, count in planned.instances)
    price = usd_per_hour(planned.instances)
    costs = "" if price is None else f", {price:.2f} USD an hour on demand"
    return f"{planned.name}: {planned.estimate.params / 1e9:.2f}B parameters on {where}{costs}"


def _how(planned: Plan) -> str:
    run, cluster = planned.run, planned.cluster
    tokens = f"{run.batch_size} {run.shape.samples} of {run.shape.sequence_length} tokens a step"
    parts = f" in {run.accumulation} parts" if run.accumulation > 1 else ""
    how = f"{run.precision}, adapters of rank {run.lora_rank}" if run.lora_rank else run.precision
    how += f", {run.optimizer}" if run.optimizer is not OptimizerName.ADAMW else ""
    tensor = f", tensor_parallel {run.tensor_parallel}" if run.tensor_parallel > 1 else ""
    return (
        f"{how}, {run.strategy} over {shards(run, cluster)} of {cluster.world_size} ranks{tensor}, "
        f"activation_checkpointing {run.activation_checkpointing}, {tokens}{parts}"
    )


def _table(planned: Plan) -> Iterator[str]:
    estimate, gpu = planned.estimate, _smallest(planned.instances)
    per_rank = estimate.bytes_per_rank
    yield f"{'on each GPU':<16}{'GiB':>8}"
    yield _row("weights", per_rank.params)
    yield _row("gradients", per_rank.grads)
    yield _row("optimizer", per_rank.optimizer)
    yield _row("a step", per_rank.activations, "activations, gathered weights, logits: an estimate")
    yield _row("together", per_rank.total)
    usable = gpu.memory_bytes * USABLE_PERCENT // 100
    yield _row("usable", usable, f"{USABLE_PERCENT} % of {gpu.kind}'s {gpu.memory_bytes / _GIB:.1f}")
    if estimate.host_bytes_per_rank:
        yield _row(
            "in the host", estimate.host_bytes_per_rank, f"for each of {planned.cluster.ranks_per_host} ranks"
        )
    whole = estimate.checkpoint_bytes
    yield _row("a checkpoint", whole // estimate.world_size, f"a rank, {whole / _GIB:.1f} together")


def _row(name: str, size: int, remark: str = "") -> str:
    return f"{name:<16}{size / _GIB:>8.1f}  {remark}".rstrip()


def _verdict(planned: Plan) -> Iterator[str]:
    estimate = planned.estimate
    yield from _refused(planned.run, planned.cluster)
    if estimate.fits:
        yield f"Fits, {estimate.headroom_bytes / _GIB:.1f} GiB to spare."
        return
    yield f"Does not fit: {-estimate.headroom_bytes / _GIB:.1f} GiB more are needed on each rank."
    would_do = remedies(planned.run, planned.cluster)
    yield "What would fit:" if would_do else "No known setting would fit: use larger GPUs or a smaller model."
    yield from (f"  {text}" for text in would_do)


def _refused(run: Run, cluster: Cluster) -> Iterator[str]:
    """Yield a line for each setting that the program would refuse, whatever the memory."""
    ranks, copy, tensor = cluster.world_size, shards(run, cluster), tensor_ranks(run, cluster)
    if cluster.ranks_per_host % tensor:
        reason = f"it does not divide the {cluster.ranks_per_host} GPUs of a host"
        yield f"The program refuses tensor_parallel {tensor}: {reason}."
        return
    if wrong := run.shape.indivisible(tensor):
        reason = ", ".join(f"{name} {size}" for name, size in wrong.items())
        yield f"The program refuses tensor_parallel {tensor}: it does not divide {reason}."
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
    """Return the GPU that the plan has to fit into."""
    return min(
        (BY_TYPE[instance_type] for instance_type, _ in instances),
        key=lambda accelerators: accelerators.memory_bytes,
    )


def usd_per_hour(instances: Instances) -> Decimal | None:
    """Add up the shipped prices of the instances; None if one has no price."""
    prices = [USD_PER_HOUR.get(instance_type) for instance_type, _ in instances]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return sum((price * count for price, (_, count) in zip(known, instances, strict=True)), Decimal(0))
