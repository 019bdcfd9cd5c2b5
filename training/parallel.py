"""Shards a plain model over all ranks: FSDP2 per block, with a mixed-precision policy."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from training.choices import Precision
from training.models.llama import Transformer
from training.world import World

_POLICIES = {
    # Inputs are not cast: tokens are integers, and the rotary tables stay fp32.
    Precision.FP32: MixedPrecisionPolicy(cast_forward_inputs=False),
    Precision.BF16: MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False
    ),
}
"""Weights and optimizer are fp32 in both; BF16 computes in bf16 and sums gradients in fp32."""


def shard(model: Transformer, *, world: World, precision: Precision) -> None:
    """Make every parameter a DTensor over all ranks, in place."""
    mesh = init_device_mesh(world.device.type, (world.size,))
    for part in (*model.blocks.values(), model):
        fully_shard(part, mesh=mesh, mp_policy=_POLICIES[precision])
        assert isinstance(part, FSDPModule)
        # Gradients are summed, not averaged: the loss is already divided by the tokens of all ranks.
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(enable=True)  # else a scaled sum, which gloo does not have
