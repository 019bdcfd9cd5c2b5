"""Muon, for sharded matrices too."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from training.models.optimizers import GuardedOptimizer, first_state, local_part

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5


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
        for one in parameters:
            if not self.state[one]:
                self.state[one] = first_state(one, names)
            if orthogonal:
                self._step_matrix(one, group)
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
    """With the same singular vectors, and singular values near 1."""
    first, second, third = _COEFFICIENTS
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    found = wide / (wide.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        square = found @ found.T
        found = first * found + (second * square + third * square @ square) @ found
    return found if wide is matrix else found.T  # type: ignore[no-any-return]


def _whole(parameter: Tensor, local: Tensor) -> Tensor:
    """Of something that is sharded as the parameter is; every rank gets it."""
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
