"""How well a run can scale at most: a model of a step, not a measurement.

A rank computes at an assumed share of its GPU's stated peak, and bytes travel at stated bandwidths, which
nothing reaches; latency, stragglers, data and checkpoints cost nothing here. What FSDP moves may hide behind
the computation, what tensor parallel moves does not: a block waits for it. So a real run should lie below
``at_most``, and ``unhidden`` says where it would lie if nothing were hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trainmaster.core.memory.footprint import Cluster
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision
from trainmaster.core.memory.step_traffic import Received, step_traffic
from trainmaster.core.memory.training_runs import Run

UTILISATION_PERCENT = 50
"""Share of the dense bf16 peak at which a rank computes: an assumption. Published runs, of whole steps on
H100, have 33 to 49 (torchtitan, benchmarks/llama3_h100_202412; nanochat, dev/LOG.md, 2026-02-02)."""
_TERA, _GIGA = 10**12, 10**9
_BITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """The stated speeds of one GPU, and of the host that it is in."""

    flops: float
    """Dense bf16 operations a second, summed in fp32."""
    inside_bytes: float
    """Bytes a second that a GPU receives from others of its host; 0 if it is the only one."""
    network_bytes: float
    """Bytes a second that a host receives from others."""


def _speeds(*, tflops: float, nvlink_gb: float, network_gbps: float) -> Speeds:
    """Convert the figures of data sheets; ``nvlink_gb`` counts both directions together, as they do."""
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
"""Instances whose GPUs are linked by NVLink, or alone. Those that are linked by PCIe are left out: what a
GPU gets of it is not stated. Sources: NVIDIA's data sheets of A100, H100, H200 and Blackwell (HGX B200);
network: Amazon EC2 user guide, accelerated computing instances, network specifications."""
_AT_THE_PEAK_OF_BF16 = (Precision.BF16, Precision.BF16_PURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Seconds that a rank spends in a step on computing, waiting and moving data, not overlapped."""

    compute_seconds: float
    waiting_seconds: float
    """Seconds of waiting for activations of other ranks: never hidden."""
    inside_seconds: float
    """Seconds for the bytes that FSDP moves inside a host."""
    between_seconds: float

    @property
    def at_most(self) -> float:
        """Return the share of the speed without communication that is left if all that can be is hidden."""
        busy = self.compute_seconds + self.waiting_seconds
        return self.compute_seconds / max(busy, self.inside_seconds, self.between_seconds)

    @property
    def unhidden(self) -> float:
        """Return the share of the speed without communication that is left if nothing is hidden."""
        moving = self.waiting_seconds + self.inside_seconds + self.between_seconds
        return self.compute_seconds / (self.compute_seconds + moving)


def bound(run: Run, cluster: Cluster, speeds: Speeds | None) -> Bound | None:
    """Bound the speed of a step.

    It is None if no speed is stated for these instances, this precision, or cpu_offload.
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
    """Count a rank's operations of a step.

    Blocks computed again cost a third more, selective recomputation nothing.
    """
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
