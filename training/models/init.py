"""First weights that follow from seed, parameter name and place alone, not from the number of ranks.

Every number is a function of its place in the whole parameter (a counter-based generator: SplitMix64, made
normal by Box and Muller). So a rank draws those of its own rows and no others, on its device, and no rank
talks to another. A generator that is drawn from in order would have to make the whole parameter on each.
"""

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from training.data import STEP, seed_of, signed_word, splitmix

SPREAD = 0.02
_RESIDUAL_WRITERS = ("attention.output.weight", "feed_forward.output.weight")
_ROWS_OF = 2**20
"""Numbers that are made before they are copied, at least those of one row; it bounds the memory."""
_BLOCK = {"cpu": 2**14}
_BLOCK_ELSEWHERE = 2**20
"""Numbers made at once, always from a multiple of it on: the rest of a vector may be rounded differently in
logarithms, so a rank makes all of a block that it needs a part of. On a CPU a block stays in its cache."""
_HALF = 2**32


@torch.no_grad()
def initialise(model: nn.Module, *, seed: int, layers: int, only: Collection[str] | None = None) -> None:
    """Fill each parameter with its first values; a sharded one on each rank's own part.

    Args:
        model: Its parameters are on the device that they are trained on.
        seed: Seed of the training.
        layers: Layers of the model: matrices that add to the residual stream start smaller in deep ones
            (GPT-2).
        only: Names of the parameters to fill; None: all. A parameter that is loaded needs no first value.
    """
    for name, parameter in model.named_parameters():
        if only is None or name in only:
            _fill(parameter, name, seed=seed, layers=layers)


def _fill(parameter: nn.Parameter, name: str, *, seed: int, layers: int) -> None:
    local, offsets = parameter.detach(), (0,) * parameter.ndim
    if isinstance(local, DTensor):
        _, offsets = compute_local_shape_and_global_offset(local.shape, local.device_mesh, local.placements)
        local = local.to_local()
    if parameter.ndim == 1:
        local.fill_(0.0 if name.endswith("bias") else 1.0)  # the others scale what is normalised
        return
    spread = SPREAD / (2 * layers) ** 0.5 if name.endswith(_RESIDUAL_WRITERS) else SPREAD
    key = seed_of(seed, "weight", name)
    width = math.prod(parameter.shape[1:])
    columns = tuple(slice(at, at + size) for at, size in zip(offsets[1:], local.shape[1:], strict=True))
    at_once = max(1, _ROWS_OF // max(1, width))
    for first in range(0, local.shape[0], at_once):
        rows = local[first : first + at_once]
        start = (offsets[0] + first) * width
        made = numbers(range(start, start + len(rows) * width), key=key, device=local.device)
        rows.copy_(made.view(-1, *parameter.shape[1:])[:, *columns] * spread)


def numbers(places: range, *, key: int, device: torch.device) -> Tensor:
    """Return numbers of the standard normal distribution for places in the whole parameter, in fp32.

    Args:
        places: Places in the flattened parameter.
        key: Number that follows from the seed and the parameter's name.
        device: Device that they are made on.
    """
    size = _BLOCK.get(device.type, _BLOCK_ELSEWHERE)
    first = places.start // size * size
    blocks = [
        _normal(torch.arange(at, at + size, device=device), key) for at in range(first, places.stop, size)
    ]
    return torch.cat(blocks)[places.start - first : places.stop - first]


def _normal(places: Tensor, key: int) -> Tensor:
    mixed = splitmix(places * STEP + signed_word(key))
    # Both halves of the 64 bits as numbers of (0, 1); the first must not be 0, whose logarithm there is not.
    radius = (mixed >> 32).add_(_HALF // 2).float().add_(0.5).div_(_HALF)
    angle = (mixed & (_HALF - 1)).float().mul_(2 * math.pi / _HALF)
    return radius.log_().mul_(-2).sqrt_().mul_(angle.cos_())
