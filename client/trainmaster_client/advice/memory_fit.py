"""Does a job of the training program fit into the GPUs of a shape. Others are not judged."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.footprint import cluster_of, estimate
from trainmaster.core.memory.training_runs import Run, run_of
from trainmaster.core.request.options import Alternative

from trainmaster_client.advice.shapes import Request

_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    fits: bool
    needed_gib: float
    """Of each GPU."""
    gpu_gib: float


def run_in(request: Request) -> Run | None:
    """None where the hyperparameters name no model of the training program."""
    hyperparameters = request.get("HyperParameters")
    return run_of(hyperparameters) if isinstance(hyperparameters, Mapping) else None


def memory_fit(shape: Alternative, run: Run | None) -> MemoryFit | None:
    """None: not a job of the training program, or no GPUs that are known."""
    accelerators = BY_TYPE.get(shape.capacity.instance_type)
    if run is None or accelerators is None or not accelerators.are_gpus:
        return None
    found = estimate(run, cluster_of([(accelerators, shape.count)]))
    return MemoryFit(
        fits=found.fits,
        needed_gib=round(found.bytes_per_rank.total / _GIB, 1),
        gpu_gib=round(accelerators.memory_bytes / _GIB, 1),
    )
