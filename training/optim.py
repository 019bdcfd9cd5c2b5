"""The optimizer, Muon among them, its learning rate, and what guards it against a bad gradient.

The norm of all gradients clips them, and no step is made where it is not finite. Nothing of it waits for the
device: each rank works on its own parts of the gradients, one kernel for all of them; the ranks then add one
number.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import AdamW, Optimizer

from training.config.choices import OptimizerName, Precision
from training.config.sections import StepOptions
from training.models.optimizers import AdamW8bit, AnyPrecisionAdamW, GuardedOptimizer, first_state, local_part

__all__ = ["AnyPrecisionAdamW", "clip", "learning_rate", "make_optimizer", "step_if_finite"]

_BETAS = (0.9, 0.95)
_BLOCKS = "blocks."
_EPSILON = 1e-6
"""The same as in torch.nn.utils.clip_grad_norm_."""
_FLOOR = 0.1
"""The learning rate falls to this share of its peak."""
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
"""Coefficients and number of the Newton-Schulz iterations of Muon."""


def make_optimizer(model: nn.Module, config: StepOptions) -> Optimizer:
    """Make the optimizer that the options name; only matrices decay.

    AdamW is fused into one kernel for all parameters. Where even the weights are bf16, it is one that keeps
    what bf16 would lose.
    """
    names = list(model.named_parameters())
    in_blocks = [weight for name, weight in names if weight.ndim > 1 and name.startswith(_BLOCKS)]
    outside = [weight for name, weight in names if weight.ndim > 1 and not name.startswith(_BLOCKS)]
    vectors = {"params": [weight for _, weight in names if weight.ndim == 1], "weight_decay": 0.0}
    decay = {"weight_decay": config.weight_decay}
    matrices = {"params": [weight for _, weight in names if weight.ndim > 1], **decay}
    if config.optimizer is OptimizerName.MUON:
        groups = [{"params": in_blocks, "orthogonal": True, **decay}, {"params": outside, **decay}, vectors]
        optimizer = Muon(groups, lr=config.lr, betas=_BETAS)
        optimizer.iterated_in = torch.float32 if config.precision is Precision.FP32 else torch.bfloat16
        return optimizer
    if config.optimizer is OptimizerName.ADAMW_8BIT:
        return AdamW8bit([matrices, vectors], lr=config.lr, betas=_BETAS)
    if config.precision is Precision.BF16_PURE:
        return AnyPrecisionAdamW([matrices, vectors], lr=config.lr, betas=_BETAS)
    return AdamW([matrices, vectors], lr=config.lr, betas=_BETAS, fused=True)


def learning_rate(step: int, *, peak: float, warmup_steps: int, steps: int) -> float:
    """Return the rate of step 1..steps: linear warm-up to the peak, then a cosine down to a tenth of it."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = (step - warmup_steps) / (steps - warmup_steps)
    return peak * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * progress)) / 2)


@torch.no_grad()
def clip(model: nn.Module, max_norm: float) -> Tensor:
    """Scale all gradients down to this norm; return the norm that they had, over all ranks, in fp32.

    Every rank must call. It is not finite when any gradient is not.
    """
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    parts = [local_part(gradient) for gradient in gradients]
    # Added up in fp64: how the ranks divide the gradients does not show in the clipped ones.
    norms = torch.stack(torch._foreach_norm(parts, 2, torch.float64))  # noqa: SLF001  torch's own name
    norm = _added_up(norms.square(), gradients).sqrt()
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


def _added_up(squares: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    """Sum over the ranks that hold different parts; copies count once."""
    kinds: dict[tuple[ProcessGroup, ...], list[int]] = {}
    for number, gradient in enumerate(gradients):
        kinds.setdefault(_groups(gradient), []).append(number)
    sums = []
    for groups, numbers in kinds.items():
        total = squares[numbers].sum()
        for group in groups:
            dist.all_reduce(total, group=group)
        sums.append(total)
    return torch.stack(sums).sum()


def _groups(gradient: Tensor) -> tuple[ProcessGroup, ...]:
    """Return the groups of ranks that each have different parts of a gradient."""
    if not isinstance(gradient, DTensor):
        return ()
    mesh = gradient.device_mesh
    return tuple(
        mesh.get_group(at) for at, placement in enumerate(gradient.placements) if not placement.is_replicate()
    )


class Muon(GuardedOptimizer):
    """Momentum made orthogonal, for the matrices of groups with ``orthogonal``; AdamW for all other groups.

    The update of a matrix is the nearest orthogonal one to its momentum, by five Newton-Schulz iterations on
    the whole matrix: each rank gathers it and computes the same. (K. Jordan et al., Muon, 2024.) Scaled by
    0.2 sqrt(max(rows, columns)) it is as large as AdamW's usual one, so learning rate and weight decay are
    AdamW's (Liu et al., Muon is Scalable for LLM Training, arXiv 2502.16982).
    """

    momentum = 0.95
    iterated_in = torch.float32

    def _step_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        orthogonal = group.get("orthogonal", False)
        names = ("momentum",) if orthogonal else ("exp_avg", "exp_avg_sq")
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = first_state(parameter, names)
            if orthogonal:
                self._step_matrix(parameter, group)
        if parameters and not orthogonal:
            self._moments(parameters).step(
                group, weight_decay=group["weight_decay"], found_inf=self.found_inf
            )

    def _step_matrix(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        momentum, weight = local_part(self.state[parameter]["momentum"]), local_part(parameter)
        gradient = local_part(parameter.grad)
        summed = momentum.lerp(gradient, 1 - self.momentum)
        towards = gradient.lerp(summed, self.momentum)  # Nesterov
        update = _my_part(_orthogonal(_whole(parameter, towards).to(self.iterated_in)), parameter).to(weight)
        scale = 0.2 * max(parameter.shape) ** 0.5
        stepped = weight * (1 - group["lr"] * group["weight_decay"]) - group["lr"] * scale * update
        if self.found_inf is not None:
            summed = torch.where(self.found_inf.bool(), momentum, summed)
            stepped = torch.where(self.found_inf.bool(), weight, stepped)
        momentum.copy_(summed)
        weight.copy_(stepped)


def _orthogonal(matrix: Tensor) -> Tensor:
    """Make a matrix with the same singular vectors, and singular values near 1."""
    first, second, third = _COEFFICIENTS
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    result = wide / (wide.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        square = result @ result.T
        result = first * result + (second * square + third * square @ square) @ result
    return result if wide is matrix else result.T  # type: ignore[no-any-return]


def _whole(parameter: Tensor, local: Tensor) -> Tensor:
    """Gather a whole tensor that is sharded as the parameter is; every rank gets it."""
    if not isinstance(parameter, DTensor):
        return local
    sharded = DTensor.from_local(
        local,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
    return sharded.full_tensor()


def _my_part(whole: Tensor, parameter: Tensor) -> Tensor:
    if not isinstance(parameter, DTensor):
        return whole
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(whole, mesh, placements, src_data_rank=None).to_local()
