"""The learning rate is a function of the step, so nothing of it needs saving."""

import math

_FLOOR = 0.1
"""The learning rate falls to this share of its peak."""


def learning_rate(step: int, *, peak: float, warmup_steps: int, steps: int) -> float:
    """Of step 1..steps: linear warm-up to the peak, then a cosine down to a tenth of it."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = (step - warmup_steps) / (steps - warmup_steps)
    return peak * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * progress)) / 2)
