"""Whether a job of the training program fits the memory of the GPUs of a shape, as computed."""

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
    """Memory each GPU needs."""
    gpu_gib: float


def run_in(request: Request) -> Run | None:
    """Read the run that the hyperparameters describe; None if they name no model of the training program."""
    hyperparameters = request.get("HyperParameters")
    return run_of(hyperparameters) if isinstance(hyperparameters, Mapping) else None


def memory_fit(shape: Alternative, run: Run | None) -> MemoryFit | None:
    """Estimate whether the job fits the memory of the shape's GPUs.

    None if it is not a job of the training program, or the shape has no GPUs that are known.
    """
    accelerators = BY_TYPE.get(shape.capacity.instance_type)
    if run is None or accelerators is None or not accelerators.are_gpus:
        return None
    footprint = estimate(run, cluster_of([(accelerators, shape.count)]))
    return MemoryFit(
        fits=footprint.fits,
        needed_gib=round(footprint.bytes_per_rank.total / _GIB, 1),
        gpu_gib=round(accelerators.memory_bytes / _GIB, 1),
    )
