"""Bound of a run's scaling: a model of a step, not a measurement.

A rank computes at an assumed share of its GPU's stated peak, and bytes travel at stated bandwidths, which
no system reaches; latency, stragglers, data and checkpoints cost nothing here. FSDP's traffic may hide behind
the computation, that of tensor parallel does not: a block waits for it. So a real run should lie below
``at_most``, and ``unhidden`` gives its speed if nothing were hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trainmaster.core.memory.footprint import Cluster
from trainmaster.core.memory.step_traffic import Received, step_traffic
from trainmaster.core.memory.training_runs import ActivationCheckpointing, Precision, Run

UTILISATION_PERCENT = 50
"""Share of the dense bf16 peak while a rank computes: an assumption. Published runs, of whole steps on H100,
have 33 to 49 (torchtitan, benchmarks/llama3_h100_202412; nanochat, dev/LOG.md, 2026-02-02)."""
_TERA, _GIGA = 10**12, 10**9
_BITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """Speeds of one GPU, and of the host that it is in."""

    flops: float
    """Operations a second: dense bf16 with fp32 sums."""
    inside_bytes: float
    """Bytes a second that a GPU receives from others of its host; 0: it is alone there."""
    network_bytes: float
    """Bytes a second that a host receives from others."""


def _speeds(*, tflops: float, nvlink_gb: float, network_gbps: float) -> Speeds:
    """Convert stated speeds; ``nvlink_gb`` is as data sheets state it: both directions together."""
    return Speeds(
        flops=tflops * _TERA,
        inside_bytes=nvlink_gb * _GIGA / 2,
        network_bytes=network_gbps * _GIGA / _BITS,
    )


SPEEDS: Mapping[str, Speeds] = MappingProxyType(
    {
        "ml.p4d.24xlarge": _speeds(tflops=312, nvlink_gb=600, network_gbps=400),
        "ml.p4de.24xlarge": _speeds(tflops=312, nvlink_gb=600, network_gbps=400),
        "ml.p5.4xlarge": _speeds(tflops=989, nvlink_gb=0, network_gbps=100),
        "ml.p5.48xlarge": _speeds(tflops=989, nvlink_gb=900, network_gbps=3200),
        "ml.p5e.48xlarge": _speeds(tflops=989, nvlink_gb=900, network_gbps=3200),
        "ml.p5en.48xlarge": _speeds(tflops=989, nvlink_gb=900, network_gbps=3200),
        "ml.p6-b200.48xlarge": _speeds(tflops=2250, nvlink_gb=1800, network_gbps=3200),
    }
)
"""Speeds of instances whose GPUs are linked by NVLink, or alone. Those with PCIe links are left out: the
bandwidth that a GPU gets of it is not stated. Sources: NVIDIA's data sheets of A100, H100, H200 and Blackwell
(HGX B200); network: Amazon EC2 user guide, accelerated computing instances, network specifications."""
_AT_THE_PEAK_OF_BF16 = (Precision.BF16, Precision.BF16_PURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Seconds of a step on each rank, and the share of it that is left for computing."""

    compute_seconds: float
    waiting_seconds: float
    """Seconds spent waiting for activations of other ranks, which are never hidden."""
    inside_seconds: float
    """Seconds of FSDP's traffic inside a host."""
    between_seconds: float

    @property
    def at_most(self) -> float:
        """Share of the speed without communication, if all that can be is hidden behind the computation."""
        busy = self.compute_seconds + self.waiting_seconds
        return self.compute_seconds / max(busy, self.inside_seconds, self.between_seconds)

    @property
    def unhidden(self) -> float:
        """The same share if nothing is hidden."""
        moving = self.waiting_seconds + self.inside_seconds + self.between_seconds
        return self.compute_seconds / (self.compute_seconds + moving)


def bound(run: Run, cluster: Cluster, speeds: Speeds | None) -> Bound | None:
    """Bound the scaling of a run; None if a speed is not stated.

    That is so for unknown instances, for other precisions, and for the way to the host's memory.
    """
    run = run.on(gpus_with_bf16=cluster.multiplies_bf16)
    if speeds is None or run.precision not in _AT_THE_PEAK_OF_BF16 or run.cpu_offload:
        return None
    traffic = step_traffic(run, cluster)
    return Bound(
        compute_seconds=_rank_flops(run, cluster) / (speeds.flops * UTILISATION_PERCENT / 100),
        waiting_seconds=sum(_seconds(traffic.activations, cluster, speeds)),
        inside_seconds=_seconds(traffic.sharding, cluster, speeds)[0],
        between_seconds=_seconds(traffic.sharding, cluster, speeds)[1],
    )


def _seconds(moved: Received, cluster: Cluster, speeds: Speeds) -> tuple[float, float]:
    """Return the seconds inside the host, and between hosts, where all ranks of a host share its network."""
    inside = moved.inside_host / speeds.inside_bytes if moved.inside_host else 0.0
    return inside, moved.between_hosts * cluster.ranks_per_host / speeds.network_bytes


def _rank_flops(run: Run, cluster: Cluster) -> float:
    """Count a rank's operations of a step; recomputed blocks add a third, selective recomputation nothing."""
    shape = run.shape
    samples = run.batch_size / cluster.world_size
    # Six operations for each weight and token: two forward, four backward. Frozen weights need no gradient of
    # their own, which leaves four.
    blocks = shape.matrix_elements * shape.layers
    mixing = 12 * shape.layers * shape.query_width * shape.sequence_length
    trained = run.trained_shard(1) if run.lora_rank else 0
    per_token = 6 * trained + 4 * blocks if run.lora_rank else 6 * blocks
    again = 2 * blocks + mixing / 3 if run.activation_checkpointing is ActivationCheckpointing.FULL else 0
    outside = (4 if run.lora_rank else 6) * shape.matrix_elements_outside
    return samples * (shape.sequence_length * (per_token + again + mixing) + outside)
