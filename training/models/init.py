"""First weights that follow from seed and parameter name alone, not from the number of ranks.

Random initialisation of sharded parameters would not do: on a CPU mesh it gives each rank the same
values, on GPUs it depends on the number of ranks.
"""

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from training.seeds import seed_of

_SPREAD = 0.02
_RESIDUAL_WRITERS = ("attention.output.weight", "feed_forward.output.weight")


def first_value(name: str, shape: torch.Size, *, seed: int, layers: int) -> Tensor:
    """The whole parameter, on the CPU. What adds to the residual stream starts smaller (GPT-2)."""
    if len(shape) == 1:
        return torch.ones(shape)  # norms
    source = torch.Generator().manual_seed(seed_of(seed, "weight", name))
    spread = _SPREAD / (2 * layers) ** 0.5 if name.endswith(_RESIDUAL_WRITERS) else _SPREAD
    return torch.randn(shape, generator=source) * spread


@torch.no_grad()
def initialise(model: nn.Module, *, seed: int, layers: int) -> None:
    """Fill each parameter, of a sharded one the local part; no rank talks to another."""
    for name, parameter in model.named_parameters():
        value = first_value(name, parameter.shape, seed=seed, layers=layers)
        if isinstance(parameter, DTensor):
            mesh, placements = parameter.device_mesh, parameter.placements
            value = distribute_tensor(value.to(parameter.device), mesh, placements, src_data_rank=None)
        parameter.copy_(value)
