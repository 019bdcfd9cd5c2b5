"""One way of sharding, for all units of a model: FSDP2, in FSDP1's words.

Source of the mapping: PyTorch documentation, torch.distributed.fsdp.fully_shard; torchtitan, docs/fsdp.md.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

from training.choices import Precision, ReduceDtype, Strategy
from training.config import TrainConfig

KEEPS_GATHERED = {Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD_ZERO2}
"""Weights stay gathered from the forward to the backward pass."""
_DTYPES = {ReduceDtype.FP32: torch.float32, ReduceDtype.BF16: torch.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    gathers: bool
    """False: each rank has a whole copy of the weights."""
    keeps_gathered: bool
    options: dict[str, Any]
    """For both of FSDP2's functions."""

    @classmethod
    def of(cls, config: TrainConfig, mesh: DeviceMesh) -> Self:
        return cls(
            gathers=config.strategy is not Strategy.NO_SHARD,
            keeps_gathered=config.strategy in KEEPS_GATHERED,
            options={
                "mesh": mesh,
                "mp_policy": _precision_policy(config),
                "offload_policy": _offload_policy(config, mesh),
            },
        )

    def apply(self, unit: nn.Module) -> FSDPModule:
        """Gather and reduce this module's parameters together, those of units within it excepted."""
        if self.gathers:
            fully_shard(unit, reshard_after_forward=not self.keeps_gathered, **self.options)
        else:
            replicate(unit, **self.options)
        return _adding_up(unit)

    def apply_kept(self, *unit: nn.Module) -> FSDPModule:
        """These modules together; gathered from the forward to the backward pass in any case."""
        if self.gathers:
            fully_shard(list(unit), reshard_after_forward=False, **self.options)
        else:
            replicate(list(unit), **self.options)
        return _adding_up(unit[0])


def _adding_up(unit: nn.Module) -> FSDPModule:
    """Gradients are summed, not averaged: the loss is already divided by the tokens of all ranks."""
    assert isinstance(unit, FSDPModule)
    unit.set_gradient_divide_factor(1.0)
    unit.set_force_sum_reduction_for_comms(enable=True)  # else a scaled sum, which gloo does not have
    return unit


def _precision_policy(config: TrainConfig) -> MixedPrecisionPolicy:
    """Inputs are not cast: tokens are integers, and the rotary tables stay fp32."""
    if config.precision is Precision.FP32:
        return MixedPrecisionPolicy(cast_forward_inputs=False)
    return MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=_DTYPES[config.reduce_dtype], cast_forward_inputs=False
    )


def _offload_policy(config: TrainConfig, mesh: DeviceMesh) -> OffloadPolicy:
    if not config.cpu_offload:
        return OffloadPolicy()
    return CPUOffloadPolicy(pin_memory=mesh.device_type != "cpu")  # only an accelerator has use for it
