"""The norm of all gradients: clipped by it, and no step is made where it is not finite.

Nothing here waits for the device. Each rank works on its own parts of the gradients, one kernel for all of
them; the ranks then add one number.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

_EPSILON = 1e-6
"""As in torch.nn.utils.clip_grad_norm_."""


def local_part(tensor: Tensor) -> Tensor:
    """What this rank holds of it; the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def clip(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients down to this norm; the norm that they had, over all ranks, in fp32.

    Every rank must call. It is not finite when any gradient is not.
    """
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    parts = [local_part(one) for one in gradients]
    # Added up in fp64: how the ranks divide the gradients does not show in the clipped ones.
    norms = torch.stack(torch._foreach_norm(parts, 2, torch.float64))  # noqa: SLF001  torch's own name
    norm = _added_up(norms.square().sum(), gradients).sqrt()
    scale = (max_norm / (norm + _EPSILON)).clamp(max=1.0)
    # Of the gradients' own type: else torch launches one kernel for each of them.
    torch._foreach_mul_(parts, scale.to(parts[0].dtype))
    return norm.float()


def step_if_finite(optimizer: Optimizer, norm: Tensor) -> None:
    """Step, unless the norm of the gradients is infinite or not a number: then nothing changes at all.

    The device decides, by the flag that the fused AdamW has for torch.amp.GradScaler. So a diverged step
    reaches neither weights nor moments, and the host may find out later.
    """
    optimizer.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]
    optimizer.step()


def _added_up(squares: Tensor, gradients: Iterable[Tensor]) -> Tensor:
    """Over the ranks that hold different parts; copies count once. All are sharded alike."""
    first = next(iter(gradients))
    if isinstance(first, DTensor):
        for dimension, placement in enumerate(first.placements):
            if placement.is_shard():
                dist.all_reduce(squares, group=first.device_mesh.get_group(dimension))
    return squares
