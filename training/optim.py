"""The optimizer and its learning rate, which is a function of the step: nothing of it needs saving."""

import math

from torch import nn
from torch.optim import AdamW

_FLOOR = 0.1
"""The learning rate falls to this share of its peak."""
_BETAS = (0.9, 0.95)


def learning_rate(step: int, *, peak: float, warmup_steps: int, steps: int) -> float:
    """Of step 1..steps: linear warm-up to the peak, then a cosine down to a tenth of it."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = (step - warmup_steps) / (steps - warmup_steps)
    return peak * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * progress)) / 2)


def make_optimizer(model: nn.Module, *, weight_decay: float) -> AdamW:
    """AdamW with decay on matrices only."""
    parameters = list(model.parameters())
    groups = [
        {"params": [one for one in parameters if one.ndim > 1], "weight_decay": weight_decay},
        {"params": [one for one in parameters if one.ndim == 1], "weight_decay": 0.0},
    ]
    return AdamW(groups, betas=_BETAS, fused=True)
